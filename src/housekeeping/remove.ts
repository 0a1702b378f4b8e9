// housekeeping/remove.ts: removes a task with its processes, branches and files.
// Invariant: files are removed under the task's lock, after its last process has ended.
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
import { endOrphans, findOrphans } from './orphans.ts';
import type { HostContext } from '../run/host-context.ts';

export const CGROUPS = '/sys/fs/cgroup';

export interface Removed {
  readonly freedBytes: number;
  readonly branches: readonly string[];
}

export async function removeEntry(
  context: HostContext,
  entry: TaskEntry,
  options: { force: boolean },
): Promise<Removed> {
  if (isRunning(entry)) {
    if (!options.force)
      throw new AgsError('task.busy', `${entry.id} is running (process ${entry.stored.run.runner.pid}).`, {
        hint: `To stop it and delete its changes: ags rm --force ${entry.id}`,
      });
    await endRunner(entry.stored.run.runner);
  }
  await stopChecks(entry.paths);
  await endOrphans(findOrphans((task) => task !== entry.id));
  if (options.force) await removeStale(CGROUPS);
  return removeFiles(context, entry);
}

/**
 * For a task without processes. Removes its branches first, because only the task records that ags made them. `isStill` repeats the
 * caller's condition under the lock; if it is no longer true, the task stays and the result is null.
 */
export async function removeFiles(context: HostContext, entry: TaskEntry): Promise<Removed>;
export async function removeFiles(
  context: HostContext,
  entry: TaskEntry,
  isStill: () => Promise<boolean>,
): Promise<Removed | null>;
export async function removeFiles(
  context: HostContext,
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
  const branches = await branchesOf(context, entry);
  removeTask(entry.paths);
  return { freedBytes, branches };
}

async function branchesOf(context: HostContext, entry: TaskEntry): Promise<string[]> {
  if (entry.kind !== 'whole' || entry.stored.task.goal === undefined) return [];
  const { removeBranches } = await import('../results/task-branch.ts');
  return removeBranches(context, entry.stored);
}

export function isRunning(entry: TaskEntry): entry is Extract<TaskEntry, { kind: 'whole' }> {
  return entry.kind === 'whole' && entry.stored.live && isUnderWay(entry.stored.run.state);
}

/** Journals of interrupted applies; their temporary files are still in the user's project. */
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

// The kernel kills the sandbox with its runner, because bwrap requested that.
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
      `Process ${runner.pid} does not exit. It is probably waiting for a device or a network file system.`,
      { hint: 'Try again later.' },
    );
}
