// housekeeping/remove.ts: throw a task away, with its processes and everything it wrote.
// Invariant: done under the task's lock, after its last process is gone.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError } from '../protocol/errors.ts';
import { isUnderWay } from '../protocol/run-state.ts';
import { isAlive, type ProcessIdentity } from '../lib/process/liveness.ts';
import { removeStale } from '../sandbox/watch/cgroup.ts';
import type { TaskPaths } from '../store/layout.ts';
import { removeTask } from '../store/tasks.ts';
import type { TaskEntry } from '../queries/entries.ts';
import { lockTask, taskBusy } from '../store/task-lock.ts';
import { sizeOf } from '../queries/list.ts';
import { stopChecks } from '../agent-run/stop-checks.ts';
import { endStrays, findStrays } from './orphans.ts';
import type { World } from '../run/host-context.ts';

export const CGROUPS = '/sys/fs/cgroup';

export interface Removed {
  readonly freedBytes: number;
  readonly branches: readonly string[];
}

export async function removeEntry(world: World, entry: TaskEntry, options: { force: boolean }): Promise<Removed> {
  if (isRunning(entry)) {
    if (!options.force)
      throw new AgsError('task.busy', `${entry.id} is running (process ${entry.stored.run.runner.pid}).`, {
        hint: `To end it and throw its changes away: ags rm --force ${entry.id}`,
      });
    await endRunner(entry.stored.run.runner);
  }
  await stopChecks(entry.paths);
  await endStrays(findStrays((task) => task !== entry.id));
  if (options.force) await removeStale(CGROUPS);
  return removeFiles(world, entry);
}

/**
 * For a task that has no process any more. Its branches go first: without the task nobody knows that they are ours. Whoever removes it
 * because of how it stands looks once more when nobody else can change that; null: it stays.
 */
export async function removeFiles(world: World, entry: TaskEntry): Promise<Removed>;
export async function removeFiles(
  world: World,
  entry: TaskEntry,
  isStill: () => Promise<boolean>,
): Promise<Removed | null>;
export async function removeFiles(
  world: World,
  entry: TaskEntry,
  isStill?: () => Promise<boolean>,
): Promise<Removed | null> {
  const lock = lockTask(entry.paths);
  if (lock === 'gone') return { freedBytes: 0, branches: [] };
  if (lock === 'busy') throw taskBusy(entry.id);
  using _lock = lock;
  if (isStill !== undefined && !(await isStill())) return null;
  await recoverApplies(entry.paths);
  const freedBytes = await sizeOf(entry.paths.root);
  const branches = await branchesOf(world, entry);
  removeTask(entry.paths);
  return { freedBytes, branches };
}

async function branchesOf(world: World, entry: TaskEntry): Promise<string[]> {
  if (entry.kind !== 'whole' || entry.stored.task.goal === undefined) return [];
  const { removeBranches } = await import('../results/task-branch.ts');
  return removeBranches(world, entry.stored);
}

export function isRunning(entry: TaskEntry): entry is Extract<TaskEntry, { kind: 'whole' }> {
  return entry.kind === 'whole' && entry.stored.live && isUnderWay(entry.stored.run.state);
}

/** Journals of applies that were cut off; their temporary files are still in the user's project. */
export function cutOffApplies(paths: TaskPaths): string[] {
  if (!existsSync(paths.journal)) return [];
  return readdirSync(paths.journal)
    .map((name) => join(paths.journal, name))
    .filter((journal) => {
      const file = join(journal, 'journal.json');
      return existsSync(file) && /^\{"version":\d+,"state":"applying"/.test(readFileSync(file, 'utf8'));
    });
}

export async function recoverApplies(paths: TaskPaths): Promise<void> {
  const journals = cutOffApplies(paths);
  if (journals.length === 0) return;
  const { recover } = await import('../review/journal.ts');
  for (const journal of journals) await recover(journal);
}

// The sandbox dies with its runner: bwrap has asked the kernel for that.
async function endRunner(runner: ProcessIdentity): Promise<void> {
  try {
    process.kill(runner.pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
  for (let waitMs = 1; waitMs < 4000 && isAlive(runner); waitMs *= 2) await sleep(waitMs);
  if (isAlive(runner))
    throw new AgsError(
      'task.busy',
      `Process ${runner.pid} does not end; it probably waits for a device or a network file system.`,
      { hint: 'Try again later.' },
    );
}
