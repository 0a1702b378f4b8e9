// merge/move-branch.ts: moves a branch of the user from one commit to another, with the files of the work tree it is checked out in.
// After a merge or an undo, it updates the events and the state of the task.
// Invariant: all or nothing. Index entries change first, then files, then the branch; each step is undone if a later one fails, and the
// branch decides. A pending record on disk lets the next process finish or roll back an interrupted move. Uncommitted work of the user is
// never overwritten: a file that differs from the branch stops the move before anything changes.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { holdFile } from '../lib/process/flock.ts';
import { visible } from '../lib/sanitize.ts';
import { readIndex, setEntries } from '../git/index-entries.ts';
import type { Repository } from '../git/repository.ts';
import { moveRef, ownerGit, readRef, sendPack } from '../git/owner-git.ts';
import { workTrees, type WorkTree } from '../git/work-trees.ts';
import type { MergeEvent } from '../protocol/event.ts';
import { advance } from '../protocol/run-state.ts';
import { applyAll, undoJournal, type PlannedChange } from '../review/journal.ts';
import { appendEvent } from '../store/events.ts';
import { eachEvent } from '../store/follow-events.ts';
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
import type { HostContext } from '../run/host-context.ts';
import { readTask, writeRun } from '../store/tasks.ts';

export interface MergeLock extends Disposable {
  readonly paths: MergePaths;
  readonly fd: number;
}

/** Allows one merge at a time in each repository, and recovers an interrupted one first. */
export async function lockMerges(context: HostContext, commonDir: string, waitSeconds = 30): Promise<MergeLock> {
  const paths = mergePaths(context.stateDir, commonDir);
  makeMergeDir(paths);
  const held = await holdFile(paths.lock, waitSeconds);
  if (held === null)
    throw new AgsError('task.busy', 'Another ags is merging in this repository.', {
      hint: 'Try again when it is done.',
    });
  try {
    await recoverMove(context, paths, held.fd);
    return { paths, ...held };
  } catch (error) {
    held[Symbol.dispose]();
    throw error;
  }
}

export interface BranchMove {
  readonly context: HostContext;
  readonly lock: MergeLock;
  readonly repository: Repository;
  /** A repository that has both commits, itself or through alternates. */
  readonly staging: string;
  readonly record: MergeRecord;
  /** The message for git's reflog of the branch. */
  readonly why: string;
}

/** Finds every obstacle before anything changes. */
export async function planMove(move: Omit<BranchMove, 'lock'>): Promise<PlannedMove> {
  const { repository, staging, record } = move;
  const trees = (await workTrees(repository.gitDir)).filter((one) => one.branch === record.ref);
  const [tree, ...more] = trees;
  if (more.length > 0)
    throw inTheWay(
      `${shortName(record.ref)} is checked out in several work trees.`,
      'Switch to another branch in all but one of them.',
    );
  if (tree === undefined) return { ...move, workTree: null, index: [], changes: [] };
  if (tree.underWay !== null)
    throw inTheWay(
      `${visible(tree.path)} is in the middle of ${tree.underWay}.`,
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
  // A new directory for each move: the journal of an earlier one must never be mistaken for this one's.
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
          'Nothing was merged. Fix this and try again.',
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
      throw inTheWay(`${shortName(record.ref)} was moved at the same time.`, 'Nothing was merged. Try again.');
  } catch (error) {
    await rollBack(paths, fd);
    throw error;
  }
  await finish(planned.context, paths, record);
}

/** Call with the lock held: programs of a killed merge hold it too, so none of them is still working. */
async function recoverMove(context: HostContext, paths: MergePaths, fd: number): Promise<void> {
  const pending = readPending(paths);
  if (pending === null) return clearPending(paths);
  const { record } = pending;
  if (!existsSync(record.repository)) return clearPending(paths);
  const now = await readRef(record.repository, record.ref);
  // The user may have committed on top since.
  const done =
    now === record.to ||
    (now !== null &&
      now !== record.from &&
      (await ownerGit(record.repository, ['merge-base', '--is-ancestor', record.to, now])).exitCode === 0);
  if (done) await finish(context, paths, record, true);
  else await rollBack(paths, fd);
}

/** Returns false if another process is at work in one of them. */
export async function recoverMoves(context: HostContext, cutOff: readonly MergePaths[]): Promise<boolean> {
  let all = true;
  for (const paths of cutOff) {
    // The process that holds the lock is merging, or recovers this merge itself.
    using held = await holdFile(paths.lock, 0);
    if (held === null) all = false;
    else await recoverMove(context, paths, held.fd);
  }
  return all;
}

async function finish(context: HostContext, paths: MergePaths, record: MergeRecord, again = false): Promise<void> {
  addMerge(paths, record);
  await updateTask(context, record, again);
  clearPending(paths);
}

async function rollBack(paths: MergePaths, fd: number): Promise<void> {
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

/** `again`: the merging process was killed, perhaps after it had called this. */
async function updateTask(context: HostContext, record: MergeRecord, again = false): Promise<void> {
  const stored = await readTask(context.stateDir, record.task).catch(() => null);
  // The task may have been removed since; the merge remains valid without it.
  if (stored === null) return;
  const { ref, to: commit, files, of } = record;
  const event: MergeEvent =
    record.kind === 'undo'
      ? { type: 'merge.undone', ref, commit }
      : { type: 'merge.done', ref, commit, ...(files === undefined || of === undefined ? {} : { files, of }) };
  if (!again || !isRecorded(stored.paths.events, record.at, event))
    appendEvent(stored.paths.events, { task: stored.task.id, at: new Date(record.at) }, event);
  await updateState(context, record.task, record.kind, record.whole);
}

function isRecorded(file: string, at: string, event: MergeEvent): boolean {
  let recorded = false;
  eachEvent(file, (line) => {
    if (line.type === 'merge.done' || line.type === 'merge.undone')
      recorded ||= line.type === event.type && line.at === at && line.commit === event.commit;
  });
  return recorded;
}

/** `whole`: the merge, or the undone merge, covered everything that the task changed. */
export async function updateState(
  context: HostContext,
  task: string,
  kind: MergeRecord['kind'],
  whole: boolean,
): Promise<void> {
  const stored = await readTask(context.stateDir, task).catch(() => null);
  const [from, to] = kind === 'merge' ? (['ready', 'merged'] as const) : (['merged', 'ready'] as const);
  if (stored === null || !whole) return;
  const { paths } = stored;
  // The reason why the agent ended stays in the events; it does not apply to merged or restored work.
  const { reason: _over, ...run } = stored.run;
  const state = kind === 'merge' && ['failed', 'stopped'].includes(run.state) ? advance(run.state, 'ready') : run.state;
  if (state === from) writeRun(paths, { ...run, state: advance(state, to) }, { durable: true });
}
