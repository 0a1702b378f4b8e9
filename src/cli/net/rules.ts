// cli/net/rules.ts: `ags net rules`: the rules in force, with the file each one comes from.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { formatRule } from '../../protocol/network-rule.ts';
import type { NetworkMode, NetworkRule } from '../../protocol/network.ts';
import { expandRules } from '../../config/network/presets.ts';
import { insideDevContainer, rulesInside } from '../../images/devcontainer/inside.ts';
import { projectConfig } from '../../network/rule-files.ts';
import { ask, runningTask } from '../../queries/running.ts';
import { createPaint, type Paint } from '../terminal/colour.ts';
import { meanings, section, shortPath, table } from '../terminal/format.ts';
import type { Arguments, Context } from '../verb.ts';

export async function showRules({ values, positionals }: Arguments, ctx: Context): Promise<number> {
  const [name] = positionals;
  const { mode, rules } = name === undefined ? await ofProject(ctx) : await ofTask(name, ctx);
  ctx.stdout.write(
    values['json'] === true
      ? `${JSON.stringify({ mode, rules: rules.map((rule) => ({ rule: formatRule(rule), ...rule })) }, null, 2)}\n`
      : rulesText(mode, rules, ctx.home, createPaint(ctx.colour)),
  );
  return EXIT.done;
}

interface Rules {
  readonly mode: NetworkMode;
  readonly rules: readonly NetworkRule[];
}

async function ofProject(ctx: Context): Promise<Rules> {
  if (insideDevContainer(ctx.host)) return { mode: 'on', rules: rulesInside() };
  const { network } = (await projectConfig(ctx.host)).config;
  return { mode: network.mode, rules: expandRules(network) };
}

async function ofTask(name: string, ctx: Context): Promise<Rules> {
  const task = await runningTask(ctx.host, name);
  const answer = await ask(task, { do: 'rules' });
  if (answer !== null) return answer;
  throw new AgsError(
    'task.not-found',
    `${task.task.name} cannot be reached: it has just ended, or has not started yet.`,
  );
}

function rulesText(mode: NetworkMode, rules: readonly NetworkRule[], home: string, paint: Paint): string {
  const own = rules.filter(({ origin }) => !origin.startsWith(BUILT_IN));
  const list = (action: NetworkRule['action']): readonly (readonly [string, string])[] =>
    own.filter((rule) => rule.action === action).map((rule) => [formatRule(rule), shortPath(rule.origin, home)]);
  const builtIn = [...new Set(rules.map(({ origin }) => origin))]
    .filter((origin) => origin.startsWith(BUILT_IN))
    .map((origin): [string, string] => [
      origin.slice(BUILT_IN.length),
      rules
        .filter((rule) => rule.origin === origin)
        .map(formatRule)
        .join(', '),
    ]);
  return [
    MODES[mode],
    ...part('Denied, even if another rule allows it', table(list('deny'), { indent: 2 }), paint),
    ...part('Allowed', table(list('allow'), { indent: 2 }), paint),
    ...part('Allowed by built-in lists', meanings(builtIn), paint),
    ...(rules.some(({ action }) => action === 'allow') ? [] : ['No rule allows anything.\n']),
  ].join('\n');
}

function part(title: string, body: string, paint: Paint): string[] {
  return body === '' ? [] : [section(title, body, paint)];
}

const BUILT_IN = 'built-in ';

const MODES = {
  on: 'on: sandboxes reach only hosts that these rules allow.\n',
  record: 'record: these rules apply; ags asks about hosts without a rule and records them.\n',
  off: 'off: sandboxes reach no host, even if a rule allows it.\n',
} as const satisfies Record<NetworkMode, string>;
