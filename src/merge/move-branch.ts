// merge/move-branch.ts: move a branch of the user's from one commit to another, with the files of the work tree it is checked out in.
// Invariant: all or nothing. Index entries, then files, then the branch, each step undone if a later one fails; the branch decides.
// What is under way is on disk, so whoever comes next finishes it or takes it back. Nothing that the user has not committed
// is overwritten: a file that is not what the branch says stops everything before anything has moved.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { holdFile } from '../lib/process/flock.ts';
import { visible } from '../lib/sanitize.ts';
import { readIndex, setEntries } from '../git/index-entries.ts';
import type { Repository } from '../git/inspect.ts';
import { moveRef, ownerGit, readRef, sendPack } from '../git/owner-git.ts';
import { workTrees, type WorkTree } from '../git/work-trees.ts';
import { applyAll, undoJournal, type PlannedChange } from '../review/journal.ts';
import {
  addMerge,
  clearPending,
  makeMergeDir,
  makePlace,
  mergePaths,
  readPending,
  writePending,
  type IndexStep,
  type MergePaths,
  type MergeRecord,
} from '../store/merges.ts';
import { inTheWay, planFiles, sameEntry, shortName } from '../results/move-files.ts';
import { settleRecord } from './recover-merges.ts';
import type { World } from '../run/host-context.ts';

export interface MergeLock extends Disposable {
  readonly paths: MergePaths;
  readonly fd: number;
}

/** One at a time for each repository. Whatever was cut off before is put in order first. */
export async function lockMerges(world: World, commonDir: string, waitSeconds = 30): Promise<MergeLock> {
  const paths = mergePaths(world.stateDir, commonDir);
  makeMergeDir(paths);
  const held = await holdFile(paths.lock, waitSeconds);
  if (held === null)
    throw new AgsError('task.busy', 'Another ags is merging in this repository.', {
      hint: 'Try again when it is done.',
    });
  try {
    await recoverMove(world, paths, held.fd);
    return { paths, ...held };
  } catch (error) {
    held[Symbol.dispose]();
    throw error;
  }
}

export interface BranchMove {
  readonly world: World;
  readonly lock: MergeLock;
  readonly repository: Repository;
  /** Holds both commits, or borrows from where they are. */
  readonly staging: string;
  readonly record: MergeRecord;
  /** For git's own log of the branch. */
  readonly why: string;
}

/** Everything that stands in the way is found here, before anything changes. */
export async function planMove(move: Omit<BranchMove, 'lock'>): Promise<PlannedMove> {
  const { repository, staging, record } = move;
  const trees = (await workTrees(repository.gitDir)).filter((one) => one.branch === record.ref);
  const [tree, ...more] = trees;
  if (more.length > 0)
    throw inTheWay(
      `${shortName(record.ref)} is checked out in several work trees.`,
      'Switch all but one of them away.',
    );
  if (tree === undefined) return { ...move, workTree: null, index: [], changes: [] };
  if (tree.underWay !== null)
    throw inTheWay(
      `In ${visible(tree.path)} ${tree.underWay} is under way.`,
      `Finish it first, or merge into another branch: --into <branch>`,
    );
  return { ...move, workTree: tree, ...(await planFiles(repository, staging, tree, record)) };
}

export interface PlannedMove extends Omit<BranchMove, 'lock'> {
  readonly workTree: WorkTree | null;
  readonly index: readonly IndexStep[];
  readonly changes: readonly PlannedChange[];
}

export async function carryOut(planned: PlannedMove, lock: MergeLock): Promise<void> {
  const { record, repository, staging, workTree, index, changes } = planned;
  const { paths, fd } = lock;
  await sendPack(staging, `${record.to}\n^${record.from}\n`, repository.commonDir, 10 * 60_000);
  // Of this move alone: what an earlier one has left of its own must never be taken for it.
  const files = join(makePlace(paths), 'files');
  writePending(paths, {
    record,
    files,
    workTree: workTree === null ? null : { path: workTree.path, gitDir: workTree.gitDir },
    index,
  });
  try {
    if (workTree !== null) {
      await setEntries(
        workTree,
        index.map(({ path, after }) => ({ path, entry: after })),
        fd,
      );
      const outcome = await applyAll({ project: workTree.path, changes, journal: files });
      const failed = outcome.find((one) => one.outcome !== 'applied');
      if (failed !== undefined && failed.outcome !== 'applied')
        throw inTheWay(
          `${visible(failed.path)}: ${'refused' in failed.outcome ? failed.outcome.refused : failed.outcome.changed}`,
          'Nothing was merged. Put it right and try again.',
        );
    }
    const moved = await moveRef(
      workTree?.gitDir ?? repository.commonDir,
      record.ref,
      record.from,
      record.to,
      planned.why,
      fd,
    );
    if (moved !== 'moved')
      throw inTheWay(`${shortName(record.ref)} was moved in this moment.`, 'Nothing was merged. Try again.');
  } catch (error) {
    await takeBack(paths, fd);
    throw error;
  }
  await finish(planned.world, paths, record);
}

/** Called with the lock held: nobody who was killed has a program left that still works. */
async function recoverMove(world: World, paths: MergePaths, fd: number): Promise<void> {
  const pending = readPending(paths);
  if (pending === null) return clearPending(paths);
  const { record } = pending;
  if (!existsSync(record.repository)) return clearPending(paths);
  const now = await readRef(record.repository, record.ref);
  // The user may have gone on from there.
  const done =
    now === record.to ||
    (now !== null &&
      now !== record.from &&
      (await ownerGit(record.repository, ['merge-base', '--is-ancestor', record.to, now])).exitCode === 0);
  if (done) await finish(world, paths, record, true);
  else await takeBack(paths, fd);
}

/** False: somebody is at work in one of them. */
export async function recoverMoves(world: World, cutOff: readonly MergePaths[]): Promise<boolean> {
  let all = true;
  for (const paths of cutOff) {
    // Who holds it is at work, or does it now.
    using held = await holdFile(paths.lock, 0);
    if (held === null) all = false;
    else await recoverMove(world, paths, held.fd);
  }
  return all;
}

async function finish(world: World, paths: MergePaths, record: MergeRecord, again = false): Promise<void> {
  addMerge(paths, record);
  await settleRecord(world, record, again);
  clearPending(paths);
}

async function takeBack(paths: MergePaths, fd: number): Promise<void> {
  const pending = readPending(paths);
  if (pending === null) return;
  if (pending.workTree !== null && existsSync(pending.workTree.path)) {
    if (existsSync(pending.files)) await undoJournal(pending.files);
    const { entries } = await readIndex(pending.workTree.gitDir);
    const ours = pending.index.filter(({ path, after }) => sameEntry(entries.get(path) ?? null, after));
    await setEntries(
      pending.workTree,
      ours.map(({ path, before }) => ({ path, entry: before })),
      fd,
    );
  }
  clearPending(paths);
}
