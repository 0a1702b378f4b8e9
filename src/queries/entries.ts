// queries/entries.ts: everything in the directory of tasks, also what is damaged or was never finished.
// Invariant: one task that cannot be read never hides the others.
import { existsSync, readFileSync } from 'node:fs';
import { AgsError } from '../protocol/errors.ts';
import { isAlive, type ProcessIdentity } from '../lib/process/liveness.ts';
import { taskPaths, type TaskPaths } from '../store/layout.ts';
import { readTask, taskIds, type StoredTask } from '../store/tasks.ts';
import { findProject } from '../run/project.ts';
import type { World } from '../run/host-context.ts';

export type TaskEntry =
  | { readonly kind: 'whole'; readonly id: string; readonly paths: TaskPaths; readonly stored: StoredTask }
  /** Its files cannot be read. */
  | { readonly kind: 'damaged'; readonly id: string; readonly paths: TaskPaths; readonly why: string }
  /** Somebody else has removed them. */
  | { readonly kind: 'partial'; readonly id: string; readonly paths: TaskPaths };

export async function readEntries(stateDir: string): Promise<TaskEntry[]> {
  return Promise.all(entryIds(stateDir).map((id) => readEntry(stateDir, id)));
}

/** Whatever else is in the directory is not a task. */
export function entryIds(stateDir: string): string[] {
  return taskIds(stateDir).filter((id) => ID.test(id));
}

/** The project of the current directory; null where there can be none, as in the home. */
export async function currentProject(world: World): Promise<string | null> {
  try {
    return (
      await findProject({
        cwd: world.cwd,
        home: world.home,
        stateDir: world.stateDir,
        cacheDir: world.cacheDir,
        configHome: world.env['XDG_CONFIG_HOME'],
      })
    ).root;
  } catch (error) {
    if (error instanceof AgsError && error.code === 'project.unsuitable') return null;
    throw error;
  }
}

const ID = /^[a-z0-9][a-z0-9-]{0,62}$/;

export async function readEntry(stateDir: string, id: string): Promise<TaskEntry> {
  const paths = taskPaths(stateDir, id);
  try {
    const stored = await readTask(stateDir, id);
    return stored === null ? partial(id, paths) : { kind: 'whole', id, paths, stored };
  } catch (error) {
    if (error instanceof AgsError && error.code === 'state.damaged')
      return { kind: 'damaged', id, paths, why: error.message };
    throw error;
  }
}

/** Without reading, and so without loading what reading needs. Null: it has its files. */
export function readPartial(stateDir: string, id: string): PartialEntry | null {
  const paths = taskPaths(stateDir, id);
  return existsSync(paths.task) && existsSync(paths.run) ? null : partial(id, paths);
}

/** As far as its file can be read. */
export function runnerLives(paths: TaskPaths): boolean {
  try {
    return isAlive((JSON.parse(readFileSync(paths.run, 'utf8')) as { runner: ProcessIdentity }).runner);
  } catch {
    return false;
  }
}

type PartialEntry = Extract<TaskEntry, { kind: 'partial' }>;

function partial(id: string, paths: TaskPaths): PartialEntry {
  return { kind: 'partial', id, paths };
}
