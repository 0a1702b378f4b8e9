// tasks/move-branch.ts: move a branch of the user's from one commit to another, with the files of the work tree it is checked out in.
// Invariant: all or nothing. Index entries, then files, then the branch, each step undone if a later one fails; the branch decides.
// What is under way is on disk, so whoever comes next finishes it or takes it back. Nothing that the user has not committed
// is overwritten: a file that is not what the branch says stops everything before anything has moved.
import { existsSync } from 'node:fs';
import { AgsError } from '../protocol/errors.ts';
import { holdFile } from '../lib/flock.ts';
import { visible } from '../lib/sanitize.ts';
import { convertedFiles, readIndex, setEntries, type IndexEntry } from '../git/index-entries.ts';
import type { Repository } from '../git/inspect.ts';
import { moveRef, ownerGit, readRef, sendPack } from '../git/owner-git.ts';
import { diffTrees, goneDirectories, listTree, readBlob, type TreeEntry } from '../git/staging.ts';
import { workTrees, type WorkTree } from '../git/work-trees.ts';
import { applyAll, undoJournal, type PlannedChange } from '../review/journal.ts';
import {
  addMerge,
  clearPending,
  makeMergeDir,
  mergePaths,
  readPending,
  writePending,
  type IndexStep,
  type MergePaths,
  type MergeRecord,
} from '../store/merges.ts';
import { stageHostFiles } from './host-files.ts';
import { settleRecord } from './settle-merge.ts';
import type { World } from './world.ts';

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
  writePending(paths, {
    record,
    workTree: workTree === null ? null : { path: workTree.path, gitDir: workTree.gitDir },
    index,
  });
  try {
    if (workTree !== null) {
      await setEntries(
        workTree.gitDir,
        index.map(({ path, after }) => ({ path, entry: after })),
        fd,
      );
      const outcome = await applyAll({ project: workTree.path, changes, journal: paths.files });
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
  if (pending === null) return;
  const { record } = pending;
  if (!existsSync(record.repository)) return clearPending(paths);
  const now = await readRef(record.repository, record.ref);
  // The user may have gone on from there.
  const done =
    now === record.to ||
    (now !== null &&
      now !== record.from &&
      (await ownerGit(record.repository, ['merge-base', '--is-ancestor', record.to, now])).exitCode === 0);
  if (done) await finish(world, paths, record);
  else await takeBack(paths, fd);
}

export async function recoverMoves(world: World, pending: readonly MergePaths[]): Promise<void> {
  for (const paths of pending) {
    // Who holds it is at work, or does it now.
    using held = await holdFile(paths.lock, 0);
    if (held !== null) await recoverMove(world, paths, held.fd);
  }
}

async function finish(world: World, paths: MergePaths, record: MergeRecord): Promise<void> {
  addMerge(paths, record);
  await settleRecord(world, record);
  clearPending(paths);
}

async function takeBack(paths: MergePaths, fd: number): Promise<void> {
  const pending = readPending(paths);
  if (pending === null) return;
  if (pending.workTree !== null && existsSync(pending.workTree.path)) {
    if (existsSync(paths.files)) await undoJournal(paths.files);
    const { entries } = await readIndex(pending.workTree.gitDir);
    const ours = pending.index.filter(({ path, after }) => same(entries.get(path) ?? null, after));
    await setEntries(
      pending.workTree.gitDir,
      ours.map(({ path, before }) => ({ path, entry: before })),
      fd,
    );
  }
  clearPending(paths);
}

async function planFiles(
  repository: Repository,
  staging: string,
  tree: WorkTree,
  { ref, from, to }: MergeRecord,
): Promise<{ index: IndexStep[]; changes: PlannedChange[] }> {
  const rows = await diffTrees(staging, from, to, { renames: false });
  const paths = rows.map((one) => one.path);
  const named = new Set(paths);
  const entriesAt = async (commit: string): Promise<Map<string, TreeEntry>> =>
    new Map((await listTree(staging, commit)).filter(({ path }) => named.has(path)).map((one) => [one.path, one]));
  const [before, after, index] = [await entriesAt(from), await entriesAt(to), await readIndex(tree.gitDir)];
  if (index.unmerged.size > 0)
    throw inTheWay(`There are conflicts in ${visible(tree.path)} that are not resolved yet.`, 'Resolve them first.');
  const special = paths.filter((path) => index.special.has(path));
  const converted = await convertedFiles(tree.gitDir, tree.path, repository.settings, paths);
  const [odd] = [
    ...special.map((path) => `${visible(path)} is not in the work tree as git has it (sparse checkout)`),
    ...[...converted].map(([path, by]) => `${visible(path)} is converted by git (${by})`),
    ...[...before, ...after].flatMap(([path, { mode }]) =>
      mode === '160000' ? [`${visible(path)} is a submodule`] : [],
    ),
  ];
  if (odd !== undefined)
    throw inTheWay(`${odd}, and ags runs none of your programs.`, advice(ref, tree, 'Merge into another branch'));
  const host = await stageHostFiles({
    project: tree.path,
    staging,
    objectFormat: repository.objectFormat,
    paths,
    captured: [...before.values(), ...after.values()],
  });
  const there = new Map((await listTree(staging, host.tree)).map((one) => [one.path, one]));
  const ignoreMode = repository.settings.get('core.filemode') === 'false';
  const equal = (path: string, entry: TreeEntry | undefined): boolean => {
    const state = host.states.get(path) ?? null;
    const file = host.unread.has(path) ? undefined : there.get(path);
    if (entry === undefined) return state === null || state.type === 'directory';
    return file?.oid === entry.oid && (ignoreMode || file.mode === entry.mode);
  };
  const staged = paths.filter((path) => !same(index.entries.get(path) ?? null, entryOf(before.get(path))));
  const edited = paths.filter((path) => !equal(path, before.get(path)) && !equal(path, after.get(path)));
  const dirty = [...new Set([...staged, ...edited])].toSorted();
  if (dirty.length > 0)
    throw new AgsError(
      'project.changed',
      `You have uncommitted changes in ${dirty.length === 1 ? 'a file' : `${dirty.length} files`} that would be written:\n${list(dirty)}`,
      {
        hint: advice(ref, tree, 'Commit or stash them (git stash), or merge into another branch'),
        details: { files: dirty },
      },
    );
  const removedDirs = await goneDirectories(
    staging,
    to,
    paths.filter((path) => !after.has(path)),
  );
  const changes = paths
    .filter((path) => !equal(path, after.get(path)))
    .map((path) => planChange(staging, path, after.get(path), host.states.get(path) ?? null, removedDirs));
  return {
    index: paths.map((path) => ({ path, before: entryOf(before.get(path)), after: entryOf(after.get(path)) })),
    changes: await Promise.all(changes),
  };
}

async function planChange(
  staging: string,
  path: string,
  entry: TreeEntry | undefined,
  expect: PlannedChange['expect'],
  prune: readonly string[],
): Promise<PlannedChange> {
  if (entry === undefined) return { op: { kind: 'delete', path, prune }, expect };
  if (entry.mode === '120000')
    return { op: { kind: 'symlink', path, target: (await readBlob(staging, entry.oid)).toString('utf8') }, expect };
  const mode = entry.mode === '100755' ? '100755' : '100644';
  return { op: { kind: 'write', path, mode, bytes: () => readBlob(staging, entry.oid) }, expect };
}

function entryOf(entry: TreeEntry | undefined): IndexEntry | null {
  return entry === undefined ? null : { mode: entry.mode, oid: entry.oid };
}

function same(a: IndexEntry | null, b: IndexEntry | null): boolean {
  return a?.mode === b?.mode && a?.oid === b?.oid;
}

export function shortName(ref: string): string {
  return visible(ref.replace(/^refs\/heads\//, ''));
}

export function list(paths: readonly string[]): string {
  const shown = paths.slice(0, 20).map((path) => `  ${visible(path)}`);
  return [...shown, ...(paths.length > 20 ? [`  and ${paths.length - 20} more`] : [])].join('\n');
}

function advice(ref: string, tree: WorkTree, what: string): string {
  return `${what}: ags merge --into <branch>. ${shortName(ref)} is checked out in ${visible(tree.path)}.`;
}

function inTheWay(message: string, hint: string): AgsError {
  return new AgsError('project.changed', message, { hint });
}
