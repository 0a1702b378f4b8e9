// store/tasks.ts: task and run files. `read…` validates them and so loads zod; writing does not.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { RunFile, TaskFile } from '../protocol/task.ts';
import { removeTree, replaceFile, tryRemoveTree } from '../lib/files.ts';
import { isAlive } from '../lib/process/liveness.ts';
import { taskPaths, tasksDir, type TaskPaths } from './layout.ts';

export interface StoredTask {
  readonly task: TaskFile;
  readonly run: RunFile;
  readonly paths: TaskPaths;
  /** The runner is alive. If not, a state of `running` means that the runner was killed. */
  readonly live: boolean;
}

/** Prefixes of tasks that are being created or removed; no task's name begins with a dot. */
export const MAKING = '.new-';
export const REMOVING = '.removing-';

/** Creates the task's directory under a free name, with its files: a task never exists without them. */
export function createTask(
  stateDir: string,
  nextId: () => string,
  describe: (id: string) => { task: TaskFile; run: RunFile },
): { id: string; paths: TaskPaths; run: RunFile } {
  const making = beginTask(stateDir);
  try {
    for (;;) {
      const id = nextId();
      const { task, run } = describe(id);
      const paths = finishTask(stateDir, making, id, { task, run });
      if (paths !== null) return { id, paths, run };
    }
  } catch (error) {
    removeTree(making.root);
    throw error;
  }
}

/** A directory that is not a task yet; `ags cleanup` removes leftovers. */
export function beginTask(stateDir: string): TaskPaths {
  mkdirSync(tasksDir(stateDir), { recursive: true, mode: 0o700 });
  const making = taskPaths(stateDir, `${MAKING}${process.pid}-${Math.random().toString(36).slice(2)}`);
  mkdirSync(making.root, { mode: 0o700 });
  return making;
}

/** Turns the directory into the task, in one step. null: another task has the name. */
export function finishTask(
  stateDir: string,
  making: TaskPaths,
  id: string,
  { task, run }: { task: TaskFile; run: RunFile },
): TaskPaths | null {
  const paths = taskPaths(stateDir, id);
  // No process reads these files before the rename.
  writeFileSync(making.task, fileText(task), { mode: 0o600 });
  writeFileSync(making.run, fileText(run), { mode: 0o600 });
  return moveInPlace(making.root, paths.root) ? paths : null;
}

/** False: another task has the name. */
function moveInPlace(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}

export function writeTask(paths: TaskPaths, task: TaskFile, options: { durable?: boolean } = {}): void {
  replaceFile(paths.task, fileText(task), options);
}

export function writeRun(paths: TaskPaths, run: RunFile, options: { durable?: boolean } = {}): void {
  replaceFile(paths.run, fileText(run), options);
}

function fileText(content: TaskFile | RunFile): string {
  return `${JSON.stringify(content)}\n`;
}

export async function readTask(stateDir: string, id: string): Promise<StoredTask | null> {
  const paths = taskPaths(stateDir, id);
  if (!existsSync(paths.task) || !existsSync(paths.run)) return null;
  const { TaskFile, RunFile } = await import('../protocol/task.ts');
  try {
    const task = TaskFile.parse(JSON.parse(readFileSync(paths.task, 'utf8')));
    const run = RunFile.parse(JSON.parse(readFileSync(paths.run, 'utf8')));
    return { task, run, paths, live: isAlive(run.runner) };
  } catch (cause) {
    // It was removed just now.
    if (!existsSync(paths.run)) return null;
    throw new AgsError('state.damaged', `The files of task ${id} cannot be read.`, {
      hint: `Look at ${paths.root}, or remove it: ags rm ${id}`,
      cause,
    });
  }
}

export function taskIds(stateDir: string): string[] {
  return existsSync(tasksDir(stateDir)) ? readdirSync(tasksDir(stateDir)).toSorted() : [];
}

/** Hides the task in one step before the slow removal; `ags cleanup` finishes an interrupted one. */
export function removeTask(paths: TaskPaths): void {
  const out = join(dirname(paths.root), `${REMOVING}${basename(paths.root)}`);
  removeTree(out);
  renameSync(paths.root, out);
  tryRemoveTree(out);
}

/** A name made from a text: lower-case letters, digits, hyphens. */
export function slug(text: string, length = 40): string {
  return (
    text
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-+|-+$/g, '')
      .slice(0, length)
      .replace(/-+$/, '') || 'task'
  );
}
