// network/change-rules.ts: allow or deny hosts: for sandboxes that are running, in a project's ags.yaml, or for all projects.
// Invariants: an allow rule that a deny rule beats is refused, never written. A changed file is approved automatically only if it
// was approved before, or asked for nothing, and only for the asks of the added rules.
import { AgsError } from '../protocol/errors.ts';
import { type NetworkRule } from '../protocol/network.ts';
import { formatRule, parseRule, RULE_WORDS } from '../protocol/network-rule.ts';
import { quote } from '../config/file/layer.ts';
import type { StoredTask } from '../store/tasks.ts';
import { projectConfig, writeRules, type WrittenRules } from './rule-files.ts';
import { ask, runningTask, runningTasks } from '../queries/running.ts';
import type { HostContext } from '../run/host-context.ts';

export type RuleScope =
  | { readonly kind: 'running' }
  | { readonly kind: 'task'; readonly name: string }
  | { readonly kind: 'project' }
  | { readonly kind: 'always' };

export interface RuleChange {
  readonly rules: readonly NetworkRule[];
  /** Names of the running sandboxes that now have the rules. */
  readonly reached: readonly string[];
  /** null: the scope has no file. */
  readonly file: WrittenRules | null;
  /** The network is off there, so no rule has an effect. */
  readonly off: boolean;
}

export async function changeRules(
  context: HostContext,
  action: NetworkRule['action'],
  texts: readonly string[],
  scope: RuleScope,
): Promise<RuleChange> {
  const rules = parseRules(action, texts);
  switch (scope.kind) {
    case 'task':
      return changeRunning([await runningTask(context, scope.name)], rules);
    case 'running':
      return changeRunning(await someRunning(context, action, texts), rules);
    case 'project':
    case 'always':
      return changeFile(context, rules, scope.kind);
  }
}

export function parseRules(action: NetworkRule['action'], texts: readonly string[]): NetworkRule[] {
  const rules = texts.map((text): NetworkRule => {
    const rule = parseRule(text);
    if ('problem' in rule)
      throw new AgsError('usage.invalid', `${quote(text)} is not a rule: ${rule.problem}.`, {
        hint: `Expected: ${RULE_WORDS}.`,
      });
    return { action, ...rule, origin: `ags ${action}` };
  });
  return rules.filter((rule, i) => rules.findIndex((other) => formatRule(other) === formatRule(rule)) === i);
}

async function someRunning(context: HostContext, action: string, texts: readonly string[]): Promise<StoredTask[]> {
  const tasks = await runningTasks(context, 'here');
  if (tasks.length > 0) return tasks;
  const words = texts.map((text) => (/^[\w.:/-]+$/.test(text) ? text : `'${text}'`)).join(' ');
  throw new AgsError('task.not-found', 'No sandbox of this project is running.', {
    hint: `For this project from now on: ags ${action} --project ${words}\nFor all your projects: ags ${action} --always ${words}\nFor one command: ags exec --${action} ${words} -- <command>`,
  });
}

async function changeRunning(tasks: readonly StoredTask[], rules: readonly NetworkRule[]): Promise<RuleChange> {
  const known = await Promise.all(tasks.map(async (task) => ({ task, has: await ask(task, { do: 'rules' }) })));
  const there = known.flatMap(({ task, has }) => (has === null ? [] : [{ task, has }]));
  if (there.length === 0)
    throw new AgsError(
      'task.not-found',
      `${tasks.map(({ task }) => task.name).join(', ')} cannot be reached: it has just ended, or has not started yet.`,
      { hint: 'Running tasks: ags list' },
    );
  for (const { task, has } of there) refuseBeaten(rules, has.rules, ` of ${task.task.name}`);
  const off = there.every(({ has }) => has.mode === 'off');
  return {
    rules,
    reached: await reach(
      there.map(({ task }) => task),
      rules,
    ),
    file: null,
    off,
  };
}

async function changeFile(
  context: HostContext,
  rules: readonly NetworkRule[],
  scope: 'project' | 'always',
): Promise<RuleChange> {
  const { input, config } = await projectConfig(context);
  const label = scope === 'project' ? 'ags.yaml' : input.userConfigFile;
  // The same rule in the same file moves to the other list.
  const stays = config.network.rules.filter(
    (rule) => !(isIn(rule, label) && rules.some((added) => formatRule(added) === formatRule(rule))),
  );
  refuseBeaten(rules, stays, '');
  const file = await writeRules(input, context.now(), scope, rules);
  const tasks = await runningTasks(context, scope === 'project' ? 'here' : 'everywhere');
  return { rules, reached: await reach(tasks, rules), file, off: config.network.mode === 'off' };
}

/** "ags.yaml:12" is in ags.yaml. */
function isIn({ origin }: NetworkRule, label: string): boolean {
  return origin.replace(/:\d+$/, '') === label;
}

/** Also for `ags net lock`, which adds the hosts of a recorded run. */
export function refuseBeaten(rules: readonly NetworkRule[], existing: readonly NetworkRule[], where: string): void {
  for (const rule of rules) {
    const deny = rule.action === 'allow' ? findBeating(existing, rule) : undefined;
    if (deny !== undefined)
      throw new AgsError(
        'usage.invalid',
        `${formatRule(rule)} stays denied: the deny rule "${formatRule(deny)}"${where} wins (${deny.origin}).`,
        { hint: removalHint(deny) },
      );
  }
}

function removalHint({ origin }: NetworkRule): string {
  if (origin === 'ags deny' || origin.startsWith('--'))
    return 'That rule lasts as long as the sandbox. Start another sandbox without it.';
  return `Remove that line first: ${origin}`;
}

async function reach(tasks: readonly StoredTask[], rules: readonly NetworkRule[]): Promise<string[]> {
  const answers = await Promise.all(
    tasks.map(async (task) => ({ task, answer: await ask(task, { do: 'add-rules', rules }) })),
  );
  return answers.flatMap(({ task, answer }) => (answer === null ? [] : [task.task.name]));
}

// "yes" only if nothing of the second is left out; when in doubt, no.
/** A deny rule that covers all of this allow rule. */
function findBeating(rules: readonly NetworkRule[], allow: NetworkRule): NetworkRule | undefined {
  return rules.find((rule) => rule.action === 'deny' && coversRule(rule, allow));
}

/** Does the rule concern this host and port, even if only in part? */
export function mentions(rule: NetworkRule, host: string, port: number): boolean {
  return rule.port === port && coversHost(rule.host, host);
}

function coversRule(wide: NetworkRule, narrow: NetworkRule): boolean {
  return (
    mentions(wide, narrow.host, narrow.port) &&
    coversMethods(wide.methods, narrow.methods) &&
    coversPath(wide.path, narrow.path)
  );
}

function coversHost(wide: string, narrow: string): boolean {
  if (wide === narrow) return true;
  return wide.startsWith('*.') && narrow.replace(/^\*\./, '').endsWith(wide.slice(1));
}

function coversMethods(wide: NetworkRule['methods'], narrow: NetworkRule['methods']): boolean {
  return wide === null || (narrow !== null && narrow.every((method) => wide.includes(method)));
}

function coversPath(wide: string | null, narrow: string | null): boolean {
  if (wide === null || wide === narrow) return true;
  return narrow !== null && wide.endsWith('*') && narrow.startsWith(wide.slice(0, -1));
}
