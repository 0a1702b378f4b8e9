// results/merge-base.ts: what the work of a task is compared with when it is merged: the commit it began with or, once a branch has some of
// it, what that branch was given. An agent that goes on after a merge would otherwise be in conflict with its own work.
// Invariant: an earlier merge counts only if it stands, its commit is part of the branch, and it took from the same run of the same task,
// whose name another may have had before: else this merge would take away what the earlier one brought, or leave out what is there no longer.
import { isAncestor } from '../git/staging/brought.ts';
import type { Repository } from '../git/inspect.ts';
import { isTree, treeOf } from '../git/staging/staging.ts';
import { mergePaths, readMerges, standing } from '../store/merges.ts';
import type { StoredTask } from '../store/tasks.ts';
import type { World } from '../run/host-context.ts';

/** A tree in the staging of the task. `tip`: the commit of the branch `ref`. */
export async function mergeBase(
  world: World,
  { task, run, paths: { staging } }: StoredTask,
  into: { base: string; repository: Repository; ref: string; tip: string },
): Promise<string> {
  const { base, ref, tip, repository } = into;
  const earlier = standing(readMerges(mergePaths(world.stateDir, repository.commonDir))).findLast(
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
