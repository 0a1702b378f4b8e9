// merge/merge.ts: put what an agent did onto a branch of the user's.
// Invariant: computed from trees in our own staging, against the commit the task started from; files that can run code are taken only if
// they were named; a conflict is found before anything has changed.
import { AgsError } from '../protocol/errors.ts';
import type { Repository } from '../git/inspect.ts';
import { moveRef } from '../git/owner-git.ts';
import type { StoredTask } from '../store/tasks.ts';
import { tellDiskTrouble } from '../run/disk-errors.ts';
import {
  findSides,
  mergeCommit,
  mergeIntoTree,
  type MergedBranch,
  type MergeSides,
  type TreeRequest,
} from './merge-tree.ts';
import { carryOut, lockMerges, planMove, type PlannedMove } from './move-branch.ts';
import { list, shortName } from '../results/move-files.ts';
import { settleState } from './recover-merges.ts';
import type { World } from '../run/host-context.ts';

export interface MergeRequest extends TreeRequest {
  readonly keepCommits: boolean;
  readonly message: string | undefined;
}

export interface MergePlan extends Pick<MergedBranch, 'ref' | 'from' | 'tree' | 'take' | 'left' | 'risky' | 'whole'> {
  /** null: everything is there already. */
  readonly to: string | null;
}

export interface Merge extends Disposable {
  readonly plan: MergePlan;
  carryOut(): Promise<void>;
}

/** Looks at everything and holds the repository's lock; nothing is changed before `carryOut`. */
export function openMerge(world: World, stored: StoredTask, request: MergeRequest): Promise<Merge> {
  return tellDiskTrouble(world, () => open(world, stored, request));
}

async function open(world: World, stored: StoredTask, request: MergeRequest): Promise<Merge> {
  const sides = await findSides(world, stored, request.into);
  const { repository } = sides;
  const lock = await lockMerges(world, repository.commonDir);
  try {
    const { plan, move, create } = await planMerge(world, stored, request, sides);
    return {
      plan,
      carryOut: () =>
        tellDiskTrouble(world, () =>
          move === null
            ? settleState(world, stored.task.id, 'merge', plan.whole)
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

/** A branch that nothing came to is not left behind. */
async function carryOutOnNew(
  { commonDir }: Repository,
  { ref, from }: MergePlan,
  act: () => Promise<void>,
): Promise<void> {
  const made = await moveRef(commonDir, ref, null, from, 'ags: a new branch');
  if (made !== 'moved')
    throw new AgsError('project.changed', `There is a branch ${shortName(ref)} by now.`, {
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
  world: World,
  stored: StoredTask,
  request: MergeRequest,
  sides: MergeSides,
): Promise<{ plan: MergePlan; move: PlannedMove | null; create: boolean }> {
  const { agent, repository } = sides;
  const merged = await mergeIntoTree(world, stored, request, sides);
  const { ref, from, tree, take, left, risky, whole, create } = merged;
  if (request.keepCommits && (left.length > 0 || request.besides !== undefined))
    throw new AgsError('usage.invalid', 'The commits of the agent can only be kept if everything in them is taken.', {
      hint: `Name the files that can run code, or leave the commits out: --squash\n${list(left.map(({ path }) => path))}`,
    });
  const plan = { ref, from, tree, take, left, risky, whole };
  if (merged.isThere) return { plan: { ...plan, to: null }, move: null, create };
  const to =
    request.keepCommits && from === agent.base
      ? agent.commit
      : await mergeCommit(world, stored, request.message, repository, {
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
    at: world.now().toISOString(),
    whole,
    taken: { run: stored.run.number ?? 1, tree: merged.taken },
  } as const;
  const why = `ags: merge ${stored.task.name}`;
  const move = await planMove({ world, repository, staging: stored.paths.staging, record, why });
  return { plan: { ...plan, to }, move, create };
}
