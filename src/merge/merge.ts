// merge/merge.ts: merges an agent's work into a branch of the user.
// Invariant: computed from trees in our own staging, against the merge base. Files that can run code are taken only if they were named.
// A conflict is found before anything changes.
import { AgsError } from '../protocol/errors.ts';
import type { Repository } from '../git/repository.ts';
import { moveRef } from '../git/owner-git.ts';
import type { StoredTask } from '../store/tasks.ts';
import { explainDiskErrors } from '../run/disk-errors.ts';
import {
  findSides,
  mergeCommit,
  mergeIntoTree,
  type MergedBranch,
  type MergeSides,
  type TreeRequest,
} from './merge-tree.ts';
import { carryOut, lockMerges, planMove, type PlannedMove, updateState } from './move-branch.ts';
import { list, shortName } from '../results/move-files.ts';
import type { HostContext } from '../run/host-context.ts';

export interface MergeRequest extends TreeRequest {
  readonly keepCommits: boolean;
  readonly message: string | undefined;
}

export interface MergePlan extends Pick<MergedBranch, 'ref' | 'from' | 'tree' | 'take' | 'left' | 'risky' | 'whole'> {
  /** null if the branch already has everything. */
  readonly to: string | null;
}

export interface Merge extends Disposable {
  readonly plan: MergePlan;
  carryOut(): Promise<void>;
}

/** Plans the merge and holds the repository's lock; nothing changes before `carryOut`. */
export function openMerge(context: HostContext, stored: StoredTask, request: MergeRequest): Promise<Merge> {
  return explainDiskErrors(context, () => open(context, stored, request));
}

async function open(context: HostContext, stored: StoredTask, request: MergeRequest): Promise<Merge> {
  const sides = await findSides(context, stored, request.into);
  const { repository } = sides;
  const lock = await lockMerges(context, repository.commonDir);
  try {
    const { plan, move, create } = await planMerge(context, stored, request, sides);
    return {
      plan,
      carryOut: () =>
        explainDiskErrors(context, () =>
          move === null
            ? updateState(context, stored.task.id, 'merge', plan.whole)
            : create
              ? carryOutOnNew(repository, plan, () => carryOut(move, lock))
              : carryOut(move, lock),
        ),
      [Symbol.dispose]: () => lock[Symbol.dispose](),
    };
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

/** Creates the branch first, and removes it again if the merge fails. */
async function carryOutOnNew(
  { commonDir }: Repository,
  { ref, from }: MergePlan,
  act: () => Promise<void>,
): Promise<void> {
  const made = await moveRef(commonDir, ref, null, from, 'ags: a new branch');
  if (made !== 'moved')
    throw new AgsError('project.changed', `The branch ${shortName(ref)} was created meanwhile.`, {
      hint: 'Choose another name.',
    });
  try {
    await act();
  } catch (error) {
    await moveRef(commonDir, ref, from, null, 'ags: nothing came to it');
    throw error;
  }
}

async function planMerge(
  context: HostContext,
  stored: StoredTask,
  request: MergeRequest,
  sides: MergeSides,
): Promise<{ plan: MergePlan; move: PlannedMove | null; create: boolean }> {
  const { agent, repository } = sides;
  const merged = await mergeIntoTree(context, stored, request, sides);
  const { ref, from, tree, take, left, risky, whole, create } = merged;
  if (request.keepCommits && (left.length > 0 || request.besides !== undefined))
    throw new AgsError('usage.invalid', "The agent's commits can only be kept if all their changes are taken.", {
      hint: `Name the files that can run code (--risky <path>), or drop the commits: --squash\n${list(left.map(({ path }) => path))}`,
    });
  const plan = { ref, from, tree, take, left, risky, whole };
  if (merged.isThere) return { plan: { ...plan, to: null }, move: null, create };
  const to =
    request.keepCommits && from === agent.base
      ? agent.commit
      : await mergeCommit(context, stored, request.message, repository, {
          tree,
          parents: request.keepCommits ? [from, agent.commit] : [from],
          authors: merged.authors,
        });
  const record = {
    version: 1,
    kind: 'merge',
    task: stored.task.id,
    repository: repository.commonDir,
    ref,
    from,
    to,
    at: context.now().toISOString(),
    whole,
    files: take.length,
    // A file that is taken in part is in both.
    of: new Set([...take, ...left].map(({ path }) => path)).size,
    taken: { run: stored.run.number ?? 1, tree: merged.nextBase },
  } as const;
  const why = `ags: merge ${stored.task.name}`;
  const move = await planMove({ context, repository, staging: stored.paths.staging, record, why });
  return { plan: { ...plan, to }, move, create };
}
