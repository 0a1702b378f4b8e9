// results/merge-base.ts: finds the merge base of a task's work: the commit it began with or, after an earlier merge into the branch, what
// that merge took. Without this, an agent that continues after a merge would conflict with its own work.
// Invariant: an earlier merge counts only if it was not undone, its commit is part of the branch, and it came from the same run of the same
// task (task names are reused). Otherwise this merge would remove what the earlier one brought, or omit what was removed since.
import { isAncestor } from '../git/staging/brought.ts';
import type { Repository } from '../git/repository.ts';
import { isTree, treeOf } from '../git/staging/staging.ts';
import { mergePaths, readMerges, standing } from '../store/merges.ts';
import type { StoredTask } from '../store/tasks.ts';
import type { HostContext } from '../run/host-context.ts';

/** Returns a tree in the task's staging. `tip` is the commit of the branch `ref`. */
export async function mergeBase(
  context: HostContext,
  { task, run, paths: { staging } }: StoredTask,
  into: { base: string; repository: Repository; ref: string; tip: string },
): Promise<string> {
  const { base, ref, tip, repository } = into;
  const earlier = standing(readMerges(mergePaths(context.stateDir, repository.commonDir))).findLast(
    (one) =>
      one.task === task.id &&
      one.ref === ref &&
      one.taken?.run === (run.number ?? 1) &&
      Date.parse(one.at) >= Date.parse(task.createdAt),
  );
  const counts =
    earlier?.taken !== undefined &&
    (await isTree(staging, earlier.taken.tree)) &&
    (await isAncestor(staging, earlier.to, tip));
  return counts ? earlier.taken.tree : treeOf(staging, base);
}
