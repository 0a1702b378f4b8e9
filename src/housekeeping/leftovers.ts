// housekeeping/leftovers.ts: finds files other than whole tasks that killed processes left behind.
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tryRemoveTree } from '../lib/files.ts';
import { lockHolder, tryLock } from '../lib/process/lock.ts';
import { STAGE_PREFIX, tasksDir, type TaskPaths } from '../store/layout.ts';
import { mergesAt, mergesDir } from '../store/merges.ts';
import { MAKING, REMOVING } from '../store/tasks.ts';
import { takeBackImport } from '../transfer/import-journal.ts';
import { sizeOf } from '../queries/list.ts';
import { lockTask } from '../store/task-lock.ts';
import { cutOffApplies, recoverApplies } from './remove.ts';
import { credentialsDir } from '../store/credentials.ts';
import { agentsDir } from '../agent-setup/installed-agents.ts';
import type { HostContext } from '../run/host-context.ts';

export interface CleanupItem {
  readonly kind:
    | 'process'
    | 'container'
    | 'image'
    | 'cgroup'
    | 'task'
    | 'layer'
    | 'apply'
    | 'lock'
    | 'directory'
    | 'file';
  readonly name: string;
  readonly why: string;
  readonly bytes: number;
  /** Removing it deletes unreviewed changes. */
  readonly losesWork: boolean;
  /** Returns false if it is in use after all, or could not be removed. */
  remove(): Promise<boolean>;
}

/** Interrupted applies. The journal tells how to finish or undo them and where their temporary files are. */
export function applyItems(id: string, paths: TaskPaths): CleanupItem[] {
  if (lockHolder(paths.lock) !== null || cutOffApplies(paths).length === 0) return [];
  const remove = (): Promise<boolean> => underLock(paths, () => recoverApplies(paths));
  return [
    {
      kind: 'apply',
      name: id,
      why: 'temporary files of an interrupted review',
      bytes: 0,
      losesWork: false,
      remove,
    },
  ];
}

/** The locks and the socket of a dead process, and unfinished locks and temporary files. */
export function lockItems(context: HostContext, id: string, paths: TaskPaths): CleanupItem[] {
  const item = (name: string, remove: () => Promise<boolean>): CleanupItem => ({
    kind: 'lock',
    name: `${id}/${name}`,
    why: 'the process that held it has ended',
    bytes: 0,
    losesWork: false,
    remove,
  });
  return list(paths.root).flatMap((name) => {
    const path = join(paths.root, name);
    // Taking over the lock and releasing it leaves no gap for another process.
    if (name === 'lock' && lockHolder(path) === null)
      return [item(name, () => underLock(paths, async () => undefined))];
    if (OTHER_LOCKS.includes(name) && lockHolder(path) === null) return [item(name, async () => dropLock(path))];
    // The process that serves the control socket holds the task's lock.
    if (name === 'control' && lockHolder(paths.lock) === null)
      return [item(name, () => underLock(paths, async () => void remove(path)))];
    const unfinished = /^((checks|bring-out)\.)?lock\.[\d.-]+$|\.tmp$/.test(name);
    return unfinished && isOld(context, path) ? [item(name, async () => remove(path))] : [];
  });
}

const OTHER_LOCKS: readonly string[] = ['checks.lock', 'bring-out.lock'];

/** Merges that were interrupted before they changed anything; `ags list` recovers the others. */
export async function mergeItems(context: HostContext): Promise<CleanupItem[]> {
  const dirs = list(mergesDir(context.stateDir)).map((name) => join(mergesDir(context.stateDir), name));
  return dirs
    .filter((dir) => list(dir).some((name) => /^place-|\.tmp$/.test(name)))
    .map((dir) => ({
      kind: 'directory',
      name: dir,
      why: 'files of an interrupted merge',
      bytes: 0,
      losesWork: false,
      async remove() {
        const { recoverMoves } = await import('../merge/move-branch.ts');
        return recoverMoves(context, [mergesAt(dir)]);
      },
    }));
}

function dropLock(path: string): boolean {
  using lock = tryLock(path);
  return lock !== null;
}

const CACHE_MS = 30 * 86_400_000;

/** Leftovers in the state, cache and data directories, in the home and in the temporary directory. */
export async function leftoverItems(context: HostContext): Promise<CleanupItem[]> {
  const { stateDir, cacheDir } = context;
  const places: readonly Place[] = [
    {
      kind: 'directory',
      dir: tasksDir(stateDir),
      names: new RegExp(`^\\${REMOVING}`),
      ageMs: 0,
      why: 'task whose removal was interrupted',
    },
    {
      kind: 'directory',
      dir: tasksDir(stateDir),
      names: new RegExp(`^\\${MAKING}`),
      ageMs: 0,
      spare: (name) => existsSync(`/proc/${name.split('-')[1]}`),
      before: takeBackImport,
      why: 'task that never started',
    },
    { kind: 'directory', dir: stateDir, names: /^probe-/, why: 'interrupted test sandbox' },
    ...[stateDir, cacheDir, agentsDir(context)].map((dir): Place => ({
      kind: 'directory',
      dir,
      names: /^\.apart-/,
      ageMs: 0,
      spare: (name) => existsSync(`/proc/${name.split('-')[1]}`),
      why: 'interrupted installation or log-in',
    })),
    {
      kind: 'directory',
      dir: stateDir,
      names: /^\.inner-.*-\d+$/,
      ageMs: 0,
      spare: (name) => existsSync(`/proc/${name.split('-').at(-1)}`),
      why: 'sockets of nested Docker whose ags was killed',
    },
    ...[context.home, realpathSync(tmpdir())].map((dir): Place => ({
      kind: 'directory',
      dir,
      names: new RegExp(`^\\${STAGE_PREFIX}\\d+-`),
      ageMs: 0,
      spare: (name) =>
        existsSync(`/proc/${name.slice(STAGE_PREFIX.length).split('-')[0]}`) || !isOwn(context, join(dir, name)),
      why: 'test files of an interrupted ags doctor --attack',
    })),
    { kind: 'file', dir: join(cacheDir, 'images/new'), names: /^/, why: 'interrupted download of an image' },
    { kind: 'file', dir: stateDir, names: /\.tmp$|^queue\.lock\.[\d.-]+$/, why: 'interrupted write' },
    {
      kind: 'file',
      dir: stateDir,
      names: /^queue\.lock$/,
      spare: (name) => lockHolder(join(stateDir, name)) !== null,
      why: 'the process that held it has ended',
    },
    { kind: 'file', dir: credentialsDir(stateDir), names: /\.tmp$/, why: 'interrupted write' },
    {
      kind: 'directory',
      dir: cacheDir,
      names: /^(plan|probe|build|perl-new)-/,
      why: 'files of an interrupted command',
    },
    {
      kind: 'directory',
      dir: cacheDir,
      names: /^etc-/,
      spare: inUse(join(cacheDir, 'etc.json')),
      why: 'old copy of /etc for sandboxes',
    },
    { kind: 'file', dir: cacheDir, names: /\.tmp$|\.json\.\d+$/, why: 'interrupted write' },
    { kind: 'file', dir: cacheDir, names: /\.json$/, ageMs: CACHE_MS, why: 'cache, not changed for 30 days' },
  ];
  const found = places.flatMap(({ kind, dir, names, ageMs, why, spare, before }) =>
    list(dir)
      .filter((name) => names.test(name) && spare?.(name) !== true)
      .map((name) => ({ kind, why, ageMs, before, path: join(dir, name) })),
  );
  return Promise.all(
    found
      .filter(({ path, ageMs }) => isOld(context, path, ageMs))
      .map(async ({ kind, why, path, before }) => ({
        kind,
        name: path,
        why,
        bytes: await bytesOf(path),
        losesWork: false,
        async remove() {
          await before?.(path);
          return remove(path);
        },
      })),
  );
}

interface Place {
  readonly kind: 'directory' | 'file';
  readonly dir: string;
  readonly names: RegExp;
  readonly ageMs?: number;
  readonly why: string;
  /** True for a file that is still needed, whatever its age. */
  readonly spare?: (name: string) => boolean;
  /** Undoes changes elsewhere before the removal. */
  readonly before?: (path: string) => Promise<void>;
}

/** The next sandbox uses the copy that `index` names. Running sandboxes keep the copy they started with. */
function inUse(index: string): (name: string) => boolean {
  const kept = existsSync(index) ? readFileSync(index, 'utf8') : '';
  return (name) => kept.includes(`/${name}"`) || mountTables().some((table) => table.includes(`/${name} `));
}

/** One for each mount namespace. Other users' are not visible, but they have their own caches. */
function mountTables(): string[] {
  const processes = new Map<string, string>();
  for (const pid of list('/proc').filter((name) => /^\d+$/.test(name)))
    processes.set(
      look(() => readlinkSync(`/proc/${pid}/ns/mnt`)),
      pid,
    );
  return [...processes.values()].map((pid) => look(() => readFileSync(`/proc/${pid}/mountinfo`, 'utf8')));
}

/** '' if the process has ended, or belongs to another user. */
function look(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}

async function underLock(paths: TaskPaths, work: () => Promise<void>): Promise<boolean> {
  const lock = lockTask(paths);
  if (typeof lock === 'string') return lock === 'gone';
  using _lock = lock;
  await work();
  return true;
}

function remove(path: string): boolean {
  return tryRemoveTree(path) && !existsSync(path);
}

async function bytesOf(path: string): Promise<number> {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat === undefined ? 0 : stat.isDirectory() ? sizeOf(path) : stat.blocks * 512;
}

function list(dir: string): string[] {
  return existsSync(dir) ? readdirSync(dir) : [];
}

/** For directories that other users share. */
function isOwn({ uid }: HostContext, path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.uid === uid;
}

/** A file younger than a minute may still be in use by its creator. */
function isOld(context: HostContext, path: string, ageMs = 60_000): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat !== undefined && context.now().getTime() - stat.mtimeMs >= ageMs;
}
