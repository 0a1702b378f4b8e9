// cli/terminal/attack-report.ts: the report of `ags doctor --attack`, by area. Each verdict is a sign and a word.
import { AREAS, type Area } from '../../attack/table/attack.ts';
import { visible } from '../../lib/sanitize.ts';
import { EXIT } from '../../protocol/errors.ts';
import { attackSandbox, type Attacked, type AttackReport, type Verdict } from '../../attack/run-attack.ts';
import type { Arguments, Context } from '../verb.ts';

export async function attackHere(values: Arguments['values'], ctx: Context): Promise<number> {
  const flags = values['backend'] === undefined ? {} : { backend: String(values['backend']) };
  const json = values['json'] === true;
  const report = await attackSandbox(ctx.host, flags, (text) => {
    if (!json && ctx.terminal.stderr) ctx.stderr.write(`ags: ${text}...\n`);
  });
  ctx.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : pageOf(report, ctx.colour));
  return report.stands ? EXIT.done : EXIT.failed;
}

const SIGNS: Readonly<Record<Verdict, string>> = {
  stopped: '✓',
  limited: '~',
  'not stopped': '✗',
  'not applicable': '-',
};
const COLOURS: Readonly<Record<Verdict, string>> = {
  stopped: '32',
  limited: '33',
  'not stopped': '31',
  'not applicable': '2',
};

function pageOf({ attacks, backend, sandbox, ms, stands, notAttacked }: AttackReport, colour: boolean): string {
  const areas = Object.keys(AREAS) as Area[];
  const parts = areas.flatMap((area) => {
    const here = attacks.filter((one) => one.area === area);
    if (here.length === 0) return [];
    const [first] = here;
    // One line is enough for an area that does not apply to this configuration.
    if (first !== undefined && here.every(({ verdict, why }) => verdict === 'not applicable' && why === first.why))
      return [`${AREAS[area]} (${counts(here)})\n  ${first.why}\n`];
    return [`${AREAS[area]} (${counts(here)})\n${here.map((one) => lineOf(one, colour)).join('')}`];
  });
  const made = attacks.filter(({ verdict }) => verdict !== 'not applicable');
  const through = made.filter(({ verdict }) => verdict === 'not stopped').length;
  const end = stands
    ? `The sandbox held: ${made.length} attempts on a ${backend} sandbox in ${Math.round(ms / 1000)} s, ${counts(attacks)}.`
    : `The sandbox did not hold: ${through} of ${made.length} attempts on a ${backend} sandbox succeeded (marked "not stopped").`;
  const besides =
    notAttacked.length === 0 ? '' : `Parts of your configuration that were not attacked: ${notAttacked.join(', ')}.\n`;
  return `${parts.join('\n')}\n${visible(sandbox)}\n${besides}${end}\n`;
}

function counts(attacks: readonly Attacked[]): string {
  return (Object.keys(SIGNS) as Verdict[])
    .map((verdict) => ({ verdict, n: attacks.filter((one) => one.verdict === verdict).length }))
    .filter(({ n }) => n > 0)
    .map(({ verdict, n }) => `${n} ${verdict}`)
    .join(', ');
}

function lineOf({ id, what, verdict, why }: Attacked, colour: boolean): string {
  const mark = `${SIGNS[verdict]} ${verdict.padEnd(14)}`;
  const shown = colour ? `\u001B[${COLOURS[verdict]}m${mark}\u001B[0m` : mark;
  return `  ${shown} ${visible(what)} [${id}]${why === '' ? '' : `\n                   ${visible(why)}`}\n`;
}
