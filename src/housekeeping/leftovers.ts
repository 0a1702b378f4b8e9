// housekeeping/leftovers.ts: files that a process which was killed has left behind, beside whole tasks.
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
import type { World } from '../run/host-context.ts';

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
  /** Changes that nobody has decided about go with it. */
  readonly losesWork: boolean;
  /** False: it is in use after all, or could not be removed. */
  remove(): Promise<boolean>;
}

/** Applies that were cut off: their temporary files, and what they had begun, are settled by the journal. */
export function applyItems(id: string, paths: TaskPaths): CleanupItem[] {
  if (lockHolder(paths.lock) !== null || cutOffApplies(paths).length === 0) return [];
  const remove = (): Promise<boolean> => underLock(paths, () => recoverApplies(paths));
  return [
    {
      kind: 'apply',
      name: id,
      why: 'temporary files of a review that was cut off',
      bytes: 0,
      losesWork: false,
      remove,
    },
  ];
}

/** The locks and the socket of a dead process, and what one that was killed while it took a lock or wrote a file has left. */
export function lockItems(world: World, id: string, paths: TaskPaths): CleanupItem[] {
  const item = (name: string, remove: () => Promise<boolean>): CleanupItem => ({
    kind: 'lock',
    name: `${id}/${name}`,
    why: 'its holder is dead',
    bytes: 0,
    losesWork: false,
    remove,
  });
  return list(paths.root).flatMap((name) => {
    const path = join(paths.root, name);
    // Taking it over and giving it back leaves no gap for another process.
    if (name === 'lock' && lockHolder(path) === null)
      return [item(name, () => underLock(paths, async () => undefined))];
    if (OTHER_LOCKS.includes(name) && lockHolder(path) === null) return [item(name, async () => dropLock(path))];
    // Whoever serves it holds the task.
    if (name === 'control' && lockHolder(paths.lock) === null)
      return [item(name, () => underLock(paths, async () => void remove(path)))];
    const cutOff = /^((checks|bring-out)\.)?lock\.[\d.-]+$|\.tmp$/.test(name);
    return cutOff && isOld(world, path) ? [item(name, async () => remove(path))] : [];
  });
}

const OTHER_LOCKS: readonly string[] = ['checks.lock', 'bring-out.lock'];

/** Merges that were cut off before they had changed anything: `ags list` has settled the others. */
export async function mergeItems(world: World): Promise<CleanupItem[]> {
  const dirs = list(mergesDir(world.stateDir)).map((name) => join(mergesDir(world.stateDir), name));
  return dirs
    .filter((dir) => list(dir).some((name) => /^place-|\.tmp$/.test(name)))
    .map((dir) => ({
      kind: 'directory',
      name: dir,
      why: 'what a merge that was cut off has left',
      bytes: 0,
      losesWork: false,
      async remove() {
        const { recoverMoves } = await import('../merge/move-branch.ts');
        return recoverMoves(world, [mergesAt(dir)]);
      },
    }));
}

function dropLock(path: string): boolean {
  using lock = tryLock(path);
  return lock !== null;
}

const CACHE_MS = 30 * 86_400_000;

/** Below the state and cache directories. */
export async function leftoverItems(world: World): Promise<CleanupItem[]> {
  const { stateDir, cacheDir } = world;
  const places: readonly Place[] = [
    {
      kind: 'directory',
      dir: tasksDir(stateDir),
      names: new RegExp(`^\\${REMOVING}`),
      ageMs: 0,
      why: 'a task whose removal was cut off',
    },
    {
      kind: 'directory',
      dir: tasksDir(stateDir),
      names: new RegExp(`^\\${MAKING}`),
      ageMs: 0,
      spare: (name) => existsSync(`/proc/${name.split('-')[1]}`),
      before: takeBackImport,
      why: 'a task that never began',
    },
    { kind: 'directory', dir: stateDir, names: /^probe-/, why: 'a trial sandbox that was cut off' },
    ...[stateDir, cacheDir, agentsDir(world)].map((dir): Place => ({
      kind: 'directory',
      dir,
      names: /^\.apart-/,
      ageMs: 0,
      spare: (name) => existsSync(`/proc/${name.split('-')[1]}`),
      why: 'an installation or a log-in that was cut off',
    })),
    {
      kind: 'directory',
      dir: stateDir,
      names: /^\.inner-.*-\d+$/,
      ageMs: 0,
      spare: (name) => existsSync(`/proc/${name.split('-').at(-1)}`),
      why: 'where an engine inside met an ags that was killed',
    },
    ...[world.home, realpathSync(tmpdir())].map((dir): Place => ({
      kind: 'directory',
      dir,
      names: new RegExp(`^\\${STAGE_PREFIX}\\d+-`),
      ageMs: 0,
      spare: (name) =>
        existsSync(`/proc/${name.slice(STAGE_PREFIX.length).split('-')[0]}`) || !isOwn(world, join(dir, name)),
      why: 'where sandboxes were attacked, by an ags that was killed',
    })),
    { kind: 'file', dir: join(cacheDir, 'images/new'), names: /^/, why: 'a part of an image that was cut off' },
    { kind: 'file', dir: stateDir, names: /\.tmp$|^queue\.lock\.[\d.-]+$/, why: 'a write that was cut off' },
    {
      kind: 'file',
      dir: stateDir,
      names: /^queue\.lock$/,
      spare: (name) => lockHolder(join(stateDir, name)) !== null,
      why: 'its holder is dead',
    },
    { kind: 'file', dir: credentialsDir(stateDir), names: /\.tmp$/, why: 'a write that was cut off' },
    { kind: 'directory', dir: cacheDir, names: /^(plan|probe|build|perl-new)-/, why: 'a command that was cut off' },
    {
      kind: 'directory',
      dir: cacheDir,
      names: /^etc-/,
      spare: inUse(join(cacheDir, 'etc.json')),
      why: 'an earlier copy of /etc for sandboxes',
    },
    { kind: 'file', dir: cacheDir, names: /\.tmp$|\.json\.\d+$/, why: 'a write that was cut off' },
    { kind: 'file', dir: cacheDir, names: /\.json$/, ageMs: CACHE_MS, why: 'a cache, not changed for 30 days' },
  ];
  const found = places.flatMap(({ kind, dir, names, ageMs, why, spare, before }) =>
    list(dir)
      .filter((name) => names.test(name) && spare?.(name) !== true)
      .map((name) => ({ kind, why, ageMs, before, path: join(dir, name) })),
  );
  return Promise.all(
    found
      .filter(({ path, ageMs }) => isOld(world, path, ageMs))
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
  /** Still needed, whatever its age. */
  readonly spare?: (name: string) => boolean;
  /** What has to be taken back elsewhere first. */
  readonly before?: (path: string) => Promise<void>;
}

/** The next sandbox will use the copy that the memory names, and a running one keeps the one it was started with. */
function inUse(memory: string): (name: string) => boolean {
  const kept = existsSync(memory) ? readFileSync(memory, 'utf8') : '';
  return (name) => kept.includes(`/${name}"`) || mountTables().some((table) => table.includes(`/${name} `));
}

/** One for each mount namespace; other users', who have caches of their own, cannot be seen. */
function mountTables(): string[] {
  const processes = new Map<string, string>();
  for (const pid of list('/proc').filter((name) => /^\d+$/.test(name)))
    processes.set(
      look(() => readlinkSync(`/proc/${pid}/ns/mnt`)),
      pid,
    );
  return [...processes.values()].map((pid) => look(() => readFileSync(`/proc/${pid}/mountinfo`, 'utf8')));
}

/** '' when the process has ended, or is another user's. */
function look(at: () => string): string {
  try {
    return at();
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

/** In a directory that others use as well. */
function isOwn({ uid }: World, path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.uid === uid;
}

/** What is younger than a minute may still be in the making. */
function isOld(world: World, path: string, ageMs = 60_000): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat !== undefined && world.now().getTime() - stat.mtimeMs >= ageMs;
}
