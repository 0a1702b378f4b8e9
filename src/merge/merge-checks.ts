// merge/merge-checks.ts: what the last checks say about a merge.
// Invariant: they count for exactly the tree they ran on, whatever else is the same.
import { AgsError } from '../protocol/errors.ts';
import type { ChecksFile } from '../protocol/checks.ts';
import type { ChecksConfig } from '../config/effective.ts';
import { readProject } from '../config/load.ts';
import { mergeLayers } from '../config/merge.ts';
import { readChecks } from '../store/checks.ts';
import type { StoredTask } from '../store/tasks.ts';
import { configInput, type World } from '../run/host-context.ts';

export interface MergeRules {
  /** Nothing is merged unless the checks have passed. */
  readonly required: boolean;
  readonly checks: ChecksConfig;
}

/** Neither needs approval: a check is a command in a sandbox, and to require it takes nothing from anybody. */
export async function mergeRules(world: World, project: string): Promise<MergeRules> {
  const input = configInput(world, project);
  const { layers } = await readProject(input);
  const { mergeCheck, checks } = mergeLayers(layers, input);
  return { required: mergeCheck, checks };
}

/** null: there is no result for this tree. */
export function checksFor(
  { paths }: Pick<StoredTask, 'paths'>,
  tree: string,
): (ChecksFile & { readonly state: 'passed' | 'failed' }) | null {
  const file = readChecks(paths);
  if (file === null || file.tree !== tree || (file.state !== 'passed' && file.state !== 'failed')) return null;
  return { ...file, state: file.state };
}

/** Those that are configured now, every one of them. */
export function havePassed(stored: Pick<StoredTask, 'paths'>, tree: string, { run }: ChecksConfig): boolean {
  const file = checksFor(stored, tree);
  if (file?.state !== 'passed') return false;
  const ran = new Set(file.checks.map((one) => one.run));
  return run.length > 0 && run.every((one) => ran.has(one.run));
}

/** The rules let this tree be merged only after checks that have not passed on it. */
export function needsChecks(stored: Pick<StoredTask, 'paths'>, tree: string, rules: MergeRules): boolean {
  return rules.required && !havePassed(stored, tree, rules.checks);
}

export function requirePassed(stored: StoredTask, tree: string, rules: MergeRules): void {
  if (!needsChecks(stored, tree, rules)) return;
  throw new AgsError('checks.failed', `The checks of ${stored.task.name} have not passed for what is to be merged.`, {
    hint: `Run them on exactly this: ags check ${stored.task.name}\n(merge.check in the configuration asks for it.)`,
  });
}
