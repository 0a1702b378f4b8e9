// queries/entries.ts: lists everything in the directory of tasks, including damaged and incomplete tasks.
// Invariant: one unreadable task never hides the others.
import { existsSync, readFileSync } from 'node:fs';
import { AgsError } from '../protocol/errors.ts';
import { isAlive, type ProcessIdentity } from '../lib/process/liveness.ts';
import { taskPaths, type TaskPaths } from '../store/layout.ts';
import { readTask, taskIds, type StoredTask } from '../store/tasks.ts';
import { findProject } from '../run/project.ts';
import type { HostContext } from '../run/host-context.ts';

export type TaskEntry =
  | { readonly kind: 'whole'; readonly id: string; readonly paths: TaskPaths; readonly stored: StoredTask }
  /** Its files cannot be read. */
  | { readonly kind: 'damaged'; readonly id: string; readonly paths: TaskPaths; readonly why: string }
  /** task.json or run.json does not exist: the task is being created or removed. */
  | { readonly kind: 'partial'; readonly id: string; readonly paths: TaskPaths };

export async function readEntries(stateDir: string): Promise<TaskEntry[]> {
  return Promise.all(entryIds(stateDir).map((id) => readEntry(stateDir, id)));
}

/** Other names in the directory are not tasks. */
export function entryIds(stateDir: string): string[] {
  return taskIds(stateDir).filter((id) => ID.test(id));
}

/** The project of the current directory; null where none is possible, as in the home directory. */
export async function currentProject(context: HostContext): Promise<string | null> {
  try {
    return (
      await findProject({
        cwd: context.cwd,
        home: context.home,
        stateDir: context.stateDir,
        cacheDir: context.cacheDir,
        configHome: context.env['XDG_CONFIG_HOME'],
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

/** Parses no file, so that callers need not load the parsers. null: both files exist. */
export function readPartial(stateDir: string, id: string): PartialEntry | null {
  const paths = taskPaths(stateDir, id);
  return existsSync(paths.task) && existsSync(paths.run) ? null : partial(id, paths);
}

/** False also if run.json cannot be read. */
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
