// merge/merge-checks.ts: decides whether the last checks allow a merge.
// Invariant: checks count only for exactly the tree they ran on.
import { AgsError } from '../protocol/errors.ts';
import type { ChecksFile } from '../protocol/checks.ts';
import type { ChecksConfig } from '../config/effective.ts';
import { readProject } from '../config/load.ts';
import { mergeLayers } from '../config/merge.ts';
import { readChecks } from '../store/checks.ts';
import type { StoredTask } from '../store/tasks.ts';
import { configInput, type HostContext } from '../run/host-context.ts';

export interface MergeRules {
  /** If true, ags merges only after the checks have passed. */
  readonly required: boolean;
  readonly checks: ChecksConfig;
}

/** Neither setting needs approval: a check runs in a sandbox, and requiring checks only restricts merges. */
export async function mergeRules(context: HostContext, project: string): Promise<MergeRules> {
  const input = configInput(context, project);
  const { layers } = await readProject(input);
  const { mergeCheck, checks } = mergeLayers(layers, input);
  return { required: mergeCheck, checks };
}

/** Returns null if there is no result for this tree. */
export function checksFor(
  { paths }: Pick<StoredTask, 'paths'>,
  tree: string,
): (ChecksFile & { readonly state: 'passed' | 'failed' }) | null {
  const file = readChecks(paths);
  if (file === null || file.tree !== tree || (file.state !== 'passed' && file.state !== 'failed')) return null;
  return { ...file, state: file.state };
}

/** True if every currently configured check has passed. */
export function havePassed(stored: Pick<StoredTask, 'paths'>, tree: string, { run }: ChecksConfig): boolean {
  const file = checksFor(stored, tree);
  if (file?.state !== 'passed') return false;
  const ran = new Set(file.checks.map((one) => one.run));
  return run.length > 0 && run.every((one) => ran.has(one.run));
}

/** True if the rules require checks that have not passed on this tree. */
export function needsChecks(stored: Pick<StoredTask, 'paths'>, tree: string, rules: MergeRules): boolean {
  return rules.required && !havePassed(stored, tree, rules.checks);
}

export function requirePassed(stored: StoredTask, tree: string, rules: MergeRules): void {
  if (!needsChecks(stored, tree, rules)) return;
  throw new AgsError('checks.failed', `The checks of ${stored.task.name} have not passed for this merge.`, {
    hint: `Run them: ags check ${stored.task.name}\n(merge.check in the configuration requires it.)`,
  });
}
