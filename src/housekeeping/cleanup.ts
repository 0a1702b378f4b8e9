// housekeeping/cleanup.ts: what sandboxes that were killed, and tasks that are settled, have left behind.
// Invariant: look first, act afterwards, and look again under the lock before anything is removed. Changes that nobody has
// decided about are kept unless they were asked for by name or with `all`.
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { lockHolder } from '../lib/process/lock.ts';
import { removeStale, staleCgroups } from '../sandbox/watch/cgroup.ts';
import { taskPaths, type TaskPaths } from '../store/layout.ts';
import { oldNetworkLogs } from '../store/network-log.ts';
import { entryIds, readEntries, readEntry, readPartial, runnerLives, type TaskEntry } from '../queries/entries.ts';
import { applyItems, leftoverItems, lockItems, mergeItems, type CleanupItem } from './leftovers.ts';
import { layerItems } from './layer-cleanup.ts';
import { describeTask, sizeOf, type TaskRow } from '../queries/list.ts';
import { CGROUPS, isRunning, removeFiles } from './remove.ts';
import { engineItems } from './engine-leftovers.ts';
import { endStrays, findStrays, type Stray } from './orphans.ts';
import { imageItems } from './unused-images.ts';
import { UNUSED_MS } from '../workspace/unused-layers.ts';
import type { World } from '../run/host-context.ts';

export interface Cleanup {
  readonly items: readonly CleanupItem[];
  /** Ended tasks that stay, because they have changes. */
  readonly kept: readonly TaskRow[];
  readonly running: number;
}

export interface CleanupOptions {
  /** Also changes that nobody has decided about. */
  readonly all: boolean;
  /** Tasks that ended later than this are left alone. */
  readonly olderThanMs: number;
}

export async function planCleanup(world: World, options: CleanupOptions): Promise<Cleanup> {
  const entries = await readEntries(world.stateDir);
  const tasks = await Promise.all(entries.map((entry) => judge(world, entry, options)));
  const removed = tasks.flatMap(({ item }) => (item === null ? [] : [item]));
  const goes = new Set(removed.map(({ name }) => name));
  const stay = entries.filter((entry) => !goes.has(entry.id) && !isRunning(entry));
  return {
    items: [
      ...strays(world).map(strayItem),
      ...(await engineItems(world)),
      ...cgroupItems(),
      ...stay.flatMap(({ id, paths }) => [...applyItems(id, paths), ...lockItems(world, id, paths)]),
      ...removed,
      ...(await mergeItems(world)),
      ...(await leftoverItems(world)),
      ...(await layerItems(world, options.all ? options.olderThanMs : UNUSED_MS, goes)),
      ...networkLogItems(world),
      ...(await imageItems(world, entries)),
    ],
    kept: tasks.flatMap(({ kept }) => (kept === null ? [] : [kept])),
    running: entries.filter(isRunning).length,
  };
}

/** In order: processes end before their groups and files go. Returns those that are gone. */
export async function cleanUp(items: readonly CleanupItem[]): Promise<CleanupItem[]> {
  const done: CleanupItem[] = [];
  for (const item of items) if (await item.remove()) done.push(item);
  return done;
}

/** The cheap part, for other commands to begin with: processes that nobody waits for, and tasks without their files. */
export async function sweep(world: World): Promise<void> {
  await endStrays(strays(world));
  for (const id of entryIds(world.stateDir)) {
    const entry = readPartial(world.stateDir, id);
    if (entry !== null && !holdsWork(entry.paths))
      await removeUnlessBusy(world, entry, async () => !holdsWork(entry.paths));
  }
}

async function judge(
  world: World,
  entry: TaskEntry,
  options: CleanupOptions,
): Promise<{ item: CleanupItem | null; kept: TaskRow | null }> {
  const nothing = { item: null, kept: null };
  if (entry.kind === 'partial' && !holdsWork(entry.paths))
    return { item: await taskItem(world, entry, 'never began'), kept: null };
  // Also one that has ended, but whose ags is just about to ask what to do with it.
  if (entry.kind === 'whole' && (entry.stored.live || lockHolder(entry.paths.lock) !== null)) return nothing;
  const row = await describeTask(entry);
  const tooYoung = world.now().getTime() - (row.endedAtMs ?? row.startedAtMs) < options.olderThanMs;
  if (!row.changed)
    return tooYoung
      ? nothing
      : { item: await taskItem(world, entry, `${STATES[row.state]}, nothing left to decide`), kept: null };
  if (!options.all || tooYoung) return { item: null, kept: row };
  return {
    item: await taskItem(world, entry, `${STATES[row.state]}, with changes that were not reviewed`, true),
    kept: null,
  };
}

const STATES: Readonly<Record<TaskRow['state'], string>> = {
  queued: 'interrupted',
  preparing: 'interrupted',
  running: 'interrupted',
  'needs-you': 'interrupted',
  interrupted: 'interrupted',
  ready: 'ended',
  'no-changes': 'ended',
  failed: 'failed',
  stopped: 'ended',
  merged: 'merged',
  discarded: 'discarded',
  damaged: 'damaged',
};

async function taskItem(world: World, entry: TaskEntry, why: string, losesWork = false): Promise<CleanupItem> {
  return {
    kind: 'task',
    name: entry.id,
    why,
    bytes: await sizeOf(entry.paths.root),
    losesWork,
    // Somebody may have started to review it since it was looked at, or may have come back to it.
    remove: () =>
      removeUnlessBusy(world, entry, async () => {
        const now = await readEntry(world.stateDir, entry.id);
        return losesWork || now.kind !== 'whole' || !(await describeTask(now)).changed;
      }),
  };
}

// Their processes were ended before.
async function removeUnlessBusy(world: World, entry: TaskEntry, isStill: () => Promise<boolean>): Promise<boolean> {
  if (isRunning(entry) || lockHolder(entry.paths.lock) !== null) return false;
  return (await removeFiles(world, entry, isStill)) !== null;
}

/** A task without its files is one that never began, unless something was written in it. */
function holdsWork(paths: TaskPaths): boolean {
  return [paths.upper, paths.copy, paths.staging].some((dir) => existsSync(dir) && readdirSync(dir).length > 0);
}

function strays(world: World): Stray[] {
  return findStrays((task) => runnerLives(taskPaths(world.stateDir, task)));
}

function strayItem(stray: Stray): CleanupItem {
  return {
    kind: 'process',
    name: String(stray.pid),
    why: `of ${stray.task}, whose ags was killed`,
    bytes: 0,
    losesWork: false,
    remove: async () => (await endStrays([stray])).length > 0,
  };
}

/** A run that is still going on keeps its log, however long it takes. */
function networkLogItems(world: World): CleanupItem[] {
  return oldNetworkLogs(world.stateDir, world.now().getTime())
    .filter(({ task }) => !runnerLives(taskPaths(world.stateDir, task)))
    .map(({ file }) => ({
      kind: 'file',
      name: file,
      why: 'an old log of the network',
      bytes: statSync(file, { throwIfNoEntry: false })?.size ?? 0,
      losesWork: false,
      async remove() {
        rmSync(file, { force: true });
        return true;
      },
    }));
}

/** Where each controller has a tree of its own, a sandbox has a group of the same name in each. */
function cgroupItems(): CleanupItem[] {
  const stale = staleCgroups(CGROUPS);
  return [...new Set(stale.map((directory) => basename(directory)))].map((name) => {
    const directories = stale.filter((directory) => basename(directory) === name);
    return {
      kind: 'cgroup',
      name: name.replace(/^ags-([a-z0-9-]+)\..*$/, '$1'),
      why: 'its ags was killed',
      bytes: 0,
      losesWork: false,
      async remove() {
        for (const directory of directories) await removeStale(dirname(directory));
        return directories.every((directory) => !existsSync(directory));
      },
    };
  });
}
