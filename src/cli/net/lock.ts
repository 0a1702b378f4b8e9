// cli/net/lock.ts: `ags net lock`: turns the hosts of recorded runs into rules in ags.yaml, host by host.
// Invariant: it writes only hosts that it showed and that the user confirmed or named.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { formatRule, parseRule } from '../../protocol/network-rule.ts';
import { expandRules } from '../../config/network/presets.ts';
import { parseRules, refuseBeaten } from '../../network/change-rules.ts';
import { readRecorded, type Recorded, type Wanted } from '../../network/logs.ts';
import { projectConfig, writeRules, type WrittenRules } from '../../network/rule-files.ts';
import { createPaint } from '../terminal/colour.ts';
import { count, cut, section, shortPath, table } from '../terminal/format.ts';
import type { Arguments, Context } from '../verb.ts';

export async function lock({ values, positionals }: Arguments, ctx: Context): Promise<number> {
  if (values['yes'] === true && values['only'] !== undefined)
    throw new AgsError('usage.invalid', '--yes and --only exclude each other.');
  const { input, config } = await projectConfig(ctx.host);
  const recorded = await readRecorded(ctx.host, input.projectDir, expandRules(config.network), positionals[0]);
  const json = values['json'] === true;
  if (!json) ctx.stdout.write(recordedText(recorded, ctx));
  const chosen = await choose(recorded.wanted, { values, positionals }, json, ctx);
  const rules = parseRules('allow', chosen.map(nameOf));
  refuseBeaten(rules, config.network.rules, '');
  const file = rules.length === 0 ? null : await writeRules(input, ctx.now(), 'project', rules);
  ctx.stdout.write(
    json
      ? `${JSON.stringify({ ...recorded, written: file?.added ?? [], trust: file?.trust ?? null }, null, 2)}\n`
      : nextText(recorded, file, config.network.mode),
  );
  return EXIT.done;
}

async function choose(
  wanted: readonly Wanted[],
  { values }: Arguments,
  json: boolean,
  ctx: Context,
): Promise<readonly Wanted[]> {
  if (values['yes'] === true) return wanted;
  if (typeof values['only'] === 'string') return only(wanted, values['only']);
  if (json || wanted.length === 0) return [];
  if (!ctx.stdin.isTTY)
    throw new AgsError('usage.no-terminal', 'ags cannot ask: there is no terminal.', {
      hint: 'To choose without a terminal: ags net lock --only <host>,<host>   (or all of them: --yes)',
    });
  const chosen: Wanted[] = [];
  for (const one of wanted) {
    const answer = (await ctx.ask(`Allow ${nameOf(one)} from now on? [y/N/q] `)).trim();
    if (/^q(uit)?$/i.test(answer)) break;
    if (/^y(es)?$/i.test(answer)) chosen.push(one);
  }
  return chosen;
}

function only(wanted: readonly Wanted[], text: string): Wanted[] {
  return text.split(',').map((name) => {
    const rule = parseRule(name.trim());
    const found = 'problem' in rule ? undefined : wanted.find((one) => nameOf(one) === formatRule(rule));
    if (found !== undefined) return found;
    throw new AgsError(
      'usage.invalid',
      `${JSON.stringify(name)} is not in the list of recorded hosts without a rule.`,
      {
        hint: 'To allow a host that is not in the list: ags allow --project <host>',
      },
    );
  });
}

function nameOf({ host, port }: Wanted): string {
  return formatRule({ host, port, methods: null, path: null });
}

function recordedText({ wanted, runs, damaged }: Recorded, ctx: Context): string {
  const paint = createPaint(ctx.colour);
  const notes = damaged.map(
    (file) => `This log is damaged and was read only up to the damage: ${shortPath(file, ctx.home)}\n`,
  );
  if (wanted.length === 0)
    return [
      runs === 0
        ? 'No run of this project has used the network yet. To record one: ags exec --network record -- <command>\n'
        : `Every host used by ${count(runs, 'run', 'runs')} of this project already has a rule.\n`,
      ...notes,
    ].join('');
  const rows = wanted.map((one) => [
    cut(nameOf(one), 36),
    { text: `${one.count}×`, right: true },
    cut(one.programs.join(', '), 20),
    one.firstAt.slice(0, 16).replace('T', ' '),
  ]);
  return [
    section(`Hosts without a rule, used by ${count(runs, 'run')} of this project`, table(rows, { indent: 2 }), paint),
    '\n',
    ...notes,
  ].join('');
}

function nextText({ wanted }: Recorded, file: WrittenRules | null, mode: string): string {
  if (wanted.length === 0) return '';
  if (file === null) return 'Nothing was written.\n';
  return [
    `Wrote ${count(file.added.length, 'rule')} into ags.yaml: ${file.added.join(', ')}\n`,
    ...(file.trust === 'pending' ? ['ags.yaml asks for more that you have not approved. Review it: ags trust\n'] : []),
    mode === 'record'
      ? 'Next: set "network: mode: on" to block all other hosts.\n'
      : 'Next: run it again without --network record to block all other hosts.\n',
  ].join('');
}
