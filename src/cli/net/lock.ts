// cli/net/lock.ts: `ags net lock`: turn what recorded runs wanted into rules of ags.yaml, host by host.
// Invariant: only hosts that were shown are written, and each by a yes or by its name.
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
  const { input, config } = await projectConfig(ctx.world);
  const recorded = await readRecorded(ctx.world, input.projectDir, expandRules(config.network), positionals[0]);
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
    throw new AgsError('usage.no-terminal', 'There is no terminal to ask you on.', {
      hint: 'To choose without being asked: ags net lock --only <host>,<host>   (or all of them: --yes)',
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
    throw new AgsError('usage.invalid', `No recorded run wanted ${JSON.stringify(name)} without a rule for it.`, {
      hint: 'To allow a host that is not in the list: ags allow --project <host>',
    });
  });
}

function nameOf({ host, port }: Wanted): string {
  return formatRule({ host, port, methods: null, path: null });
}

function recordedText({ wanted, runs, damaged }: Recorded, ctx: Context): string {
  const paint = createPaint(ctx.colour);
  const notes = damaged.map((file) => `Damaged, and used only up to there: ${shortPath(file, ctx.home)}\n`);
  if (wanted.length === 0)
    return [
      runs === 0
        ? 'No run of this project has used the network yet. To record one: ags exec --network record -- <command>\n'
        : `All that ${count(runs, 'run', 'runs')} of this project wanted has a rule already.\n`,
      ...notes,
    ].join('');
  const rows = wanted.map((one) => [
    cut(nameOf(one), 36),
    { text: `${one.count}×`, right: true },
    cut(one.programs.join(', '), 20),
    one.firstAt.slice(0, 16).replace('T', ' '),
  ]);
  return [
    section(`Wanted by ${count(runs, 'run')} of this project, without a rule`, table(rows, { indent: 2 }), paint),
    '\n',
    ...notes,
  ].join('');
}

function nextText({ wanted }: Recorded, file: WrittenRules | null, mode: string): string {
  if (wanted.length === 0) return '';
  if (file === null) return 'Nothing was written.\n';
  return [
    `Wrote ${count(file.added.length, 'rule')} into ags.yaml: ${file.added.join(', ')}\n`,
    ...(file.trust === 'pending'
      ? ['ags.yaml asks for more that you have not approved. Look at it with: ags trust\n']
      : []),
    mode === 'record'
      ? 'Next: set "network: mode: on", so that nothing else gets through.\n'
      : 'Next: run it again without --network record; nothing else gets through then.\n',
  ].join('');
}
