// store/task-lock.ts: a lock for changes to a task. The task may have been removed since it was found.
import { AgsError } from '../protocol/errors.ts';
import { tryLock } from '../lib/process/lock.ts';
import { visible } from '../lib/sanitize.ts';
import type { TaskPaths } from './layout.ts';
import type { StoredTask } from './tasks.ts';

export function lockTask(paths: TaskPaths): Disposable | 'busy' | 'gone' {
  try {
    return tryLock(paths.lock) ?? 'busy';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'gone';
    throw error;
  }
}

/** Throws if another process works on the task, or if it no longer exists. */
export function holdTask({ task, paths }: StoredTask): Disposable {
  const lock = lockTask(paths);
  if (lock === 'busy') throw taskBusy(task.name);
  if (lock === 'gone') throw taskNotFound(task.name);
  return lock;
}

export function taskBusy(name: string): AgsError {
  return new AgsError('task.busy', `Another ags command is working on ${name}.`, {
    hint: 'Try again when it is done.',
  });
}

export function taskNotFound(name: string): AgsError {
  return new AgsError('task.not-found', `There is no task "${visible(name)}".`, { hint: 'List them: ags list --all' });
}
