// store/task-lock.ts: whoever changes a task keeps it to itself meanwhile. A task may have been removed since it was found.
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

/** Throws where somebody else works on it, or where it is no longer there. */
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
