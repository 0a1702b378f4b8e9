// housekeeping/cleanup.ts: plans and removes what killed sandboxes and finished tasks left behind.
// Invariant: plan first, act afterwards, and check again under the lock before removing anything. Unreviewed changes are kept
// unless the user names the task or passes `all`.
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { STATE_WORDS } from '../protocol/run-state.ts';
import { lockHolder } from '../lib/process/lock.ts';
import { removeStale, staleCgroups } from '../sandbox/watch/cgroup.ts';
import { taskPaths, type TaskPaths } from '../store/layout.ts';
import { oldNetworkLogs } from '../store/network-log.ts';
import { entryIds, readEntries, readEntry, readPartial, runnerLives, type TaskEntry } from '../queries/entries.ts';
import { applyItems, leftoverItems, lockItems, mergeItems, type CleanupItem } from './leftovers.ts';
import { layerItems } from './layer-cleanup.ts';
import { describeTask, isUnfinished, sizeOf, type TaskRow } from '../queries/list.ts';
import { CGROUPS, isRunning, removeFiles } from './remove.ts';
import { engineItems } from './engine-leftovers.ts';
import { endOrphans, findOrphans, type Orphan } from './orphans.ts';
import { imageItems } from './unused-images.ts';
import { UNUSED_MS } from '../workspace/unused-layers.ts';
import type { HostContext } from '../run/host-context.ts';

export interface Cleanup {
  readonly items: readonly CleanupItem[];
  /** Ended tasks that stay because they have unreviewed changes, or a goal that is still to be worked on. */
  readonly kept: readonly TaskRow[];
  readonly running: number;
}

export interface CleanupOptions {
  /** Also remove tasks with unreviewed changes and unfinished goals. */
  readonly all: boolean;
  /** Keep tasks that ended more recently than this. */
  readonly olderThanMs: number;
  /** Only tasks of this project, and nothing that belongs to no task. Default: all projects. */
  readonly project?: string;
}

export async function planCleanup(context: HostContext, options: CleanupOptions): Promise<Cleanup> {
  const { project } = options;
  const all = await readEntries(context.stateDir);
  const entries =
    project === undefined
      ? all
      : all.filter((entry) => entry.kind === 'whole' && entry.stored.task.project === project);
  // A goal may begin from the result of a task in which nothing is left to review.
  const awaited = new Set(all.flatMap((entry) => (entry.kind === 'whole' ? (entry.stored.run.after ?? []) : [])));
  const judged = options.all ? entries : entries.filter(({ id }) => !awaited.has(id));
  const tasks = await Promise.all(judged.map((entry) => judge(context, entry, options)));
  const removed = tasks.flatMap(({ item }) => (item === null ? [] : [item]));
  const going = new Set(removed.map(({ name }) => name));
  const staying = entries.filter((entry) => !going.has(entry.id) && !isRunning(entry));
  const isOurs = ({ task }: Orphan): boolean => project === undefined || entries.some(({ id }) => id === task);
  const inTasks = [
    ...staying.flatMap(({ id, paths }) => [...applyItems(id, paths), ...lockItems(context, id, paths)]),
    ...removed,
  ];
  return {
    items: [
      ...orphans(context).filter(isOurs).map(orphanItem),
      ...(project === undefined ? [...(await engineItems(context)), ...cgroupItems()] : []),
      ...inTasks,
      ...(project === undefined ? await itemsOfNoTask(context, all, going, options) : []),
    ],
    kept: tasks.flatMap(({ kept }) => (kept === null ? [] : [kept])),
    running: entries.filter(isRunning).length,
  };
}

async function itemsOfNoTask(
  context: HostContext,
  entries: readonly TaskEntry[],
  going: ReadonlySet<string>,
  options: CleanupOptions,
): Promise<CleanupItem[]> {
  return [
    ...(await mergeItems(context)),
    ...(await leftoverItems(context)),
    ...(await layerItems(context, options.all ? options.olderThanMs : UNUSED_MS, going)),
    ...networkLogItems(context),
    ...(await imageItems(context, entries)),
  ];
}

/** Removes items in order: processes end before their cgroups and files go. Returns the removed items. */
export async function cleanUp(items: readonly CleanupItem[]): Promise<CleanupItem[]> {
  const done: CleanupItem[] = [];
  for (const item of items) if (await item.remove()) done.push(item);
  return done;
}

/** The cheap part, which other commands run first: ends orphan processes and removes tasks without their files. */
export async function sweep(context: HostContext): Promise<void> {
  await endOrphans(orphans(context));
  for (const id of entryIds(context.stateDir)) {
    const entry = readPartial(context.stateDir, id);
    if (entry !== null && !holdsWork(entry.paths))
      await removeUnlessBusy(context, entry, async () => !holdsWork(entry.paths));
  }
}

async function judge(
  context: HostContext,
  entry: TaskEntry,
  options: CleanupOptions,
): Promise<{ item: CleanupItem | null; kept: TaskRow | null }> {
  const nothing = { item: null, kept: null };
  if (entry.kind === 'partial' && !holdsWork(entry.paths))
    return { item: await taskItem(context, entry, 'never started'), kept: null };
  // Also keeps an ended task whose ags is still running, for example to ask about its changes.
  if (entry.kind === 'whole' && (entry.stored.live || lockHolder(entry.paths.lock) !== null)) return nothing;
  const row = await describeTask(entry);
  const tooYoung = context.now().getTime() - (row.endedAtMs ?? row.startedAtMs) < options.olderThanMs;
  if (!isWanted(entry, row))
    return tooYoung
      ? nothing
      : { item: await taskItem(context, entry, `${STATE_WORDS[row.state]}, nothing left to review`), kept: null };
  if (!options.all || tooYoung) return { item: null, kept: row };
  return {
    item: await taskItem(
      context,
      entry,
      `${STATE_WORDS[row.state]}, with ${row.changed ? 'unreviewed changes' : 'an unfinished goal'}`,
      true,
    ),
    kept: null,
  };
}

/** Work and goals that only the user may give up. */
function isWanted(entry: TaskEntry, row: TaskRow): boolean {
  return row.changed || (entry.kind === 'whole' && isUnfinished(entry.stored));
}

async function taskItem(context: HostContext, entry: TaskEntry, why: string, losesWork = false): Promise<CleanupItem> {
  return {
    kind: 'task',
    name: entry.id,
    why,
    bytes: await sizeOf(entry.paths.root),
    losesWork,
    // The user may have started a review or another turn since the plan was made.
    remove: () =>
      removeUnlessBusy(context, entry, async () => {
        const now = await readEntry(context.stateDir, entry.id);
        return losesWork || now.kind !== 'whole' || !isWanted(now, await describeTask(now));
      }),
  };
}

// The caller has ended the task's processes.
async function removeUnlessBusy(
  context: HostContext,
  entry: TaskEntry,
  isStill: () => Promise<boolean>,
): Promise<boolean> {
  if (isRunning(entry) || lockHolder(entry.paths.lock) !== null) return false;
  return (await removeFiles(context, entry, isStill)) !== null;
}

/** A task without task.json or run.json never started, unless its workspace has files. */
function holdsWork(paths: TaskPaths): boolean {
  return [paths.upper, paths.copy, paths.staging].some((dir) => existsSync(dir) && readdirSync(dir).length > 0);
}

function orphans(context: HostContext): Orphan[] {
  return findOrphans((task) => runnerLives(taskPaths(context.stateDir, task)));
}

function orphanItem(orphan: Orphan): CleanupItem {
  return {
    kind: 'process',
    name: String(orphan.pid),
    why: `process of ${orphan.task}, whose ags was killed`,
    bytes: 0,
    losesWork: false,
    remove: async () => (await endOrphans([orphan])).length > 0,
  };
}

/** Keeps the logs of running tasks, whatever their age. */
function networkLogItems(context: HostContext): CleanupItem[] {
  return oldNetworkLogs(context.stateDir, context.now().getTime())
    .filter(({ task }) => !runnerLives(taskPaths(context.stateDir, task)))
    .map(({ file }) => ({
      kind: 'file',
      name: file,
      why: 'old network log',
      bytes: statSync(file, { throwIfNoEntry: false })?.size ?? 0,
      losesWork: false,
      async remove() {
        rmSync(file, { force: true });
        return true;
      },
    }));
}

/** With cgroup v1 a sandbox has a group of the same name in the tree of each controller. */
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
