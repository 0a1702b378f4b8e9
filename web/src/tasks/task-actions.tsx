// web/src/tasks/task-actions.tsx: stop, restart, continue, fork and remove, with their dialogs and messages.
import { useQueryClient } from '@tanstack/react-query';
import { createContext, use, useMemo, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiTask } from '../../../src/protocol/api/api.ts';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { useConfirm } from '../ui/confirm.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { showToast, showFailure } from '../ui/toasts.tsx';
import { ForkForm } from './fork-form.tsx';

export interface TaskActions {
  /** The first call asks a task to stop; the second one kills it. */
  stop(tasks: readonly ApiTask[]): void;
  /** For keys: asks before it stops or restarts. */
  askToStop(task: ApiTask): void;
  askToRestart(task: ApiTask): void;
  restart(tasks: readonly ApiTask[]): void;
  undoMerge(task: ApiTask): void;
  continueTask(task: ApiTask): void;
  fork(task: ApiTask): void;
  remove(tasks: readonly ApiTask[], after?: () => void): void;
}

const UNDO_MS = 5000;
const Context = createContext<TaskActions | null>(null);

export function useTaskActions(): TaskActions {
  const actions = use(Context);
  if (actions === null) throw new Error('used outside of TaskActionsProvider');
  return actions;
}

type Asking =
  | { readonly what: 'remove'; readonly tasks: readonly ApiTask[]; readonly after: (() => void) | undefined }
  | { readonly what: 'fork'; readonly task: ApiTask }
  | null;

export function TaskActionsProvider({ children }: { children: ReactNode }): ReactNode {
  const client = useQueryClient();
  const [asking, setAsking] = useState<Asking>(null);
  const [confirm, askFirst] = useConfirm();
  const stopped = useRef(new Set<string>());
  const actions = useMemo((): TaskActions => {
    const each = async (tasks: readonly ApiTask[], act: (task: ApiTask) => Promise<unknown>): Promise<number> => {
      const done = await Promise.allSettled(tasks.map(act));
      const failed = done.find((one) => one.status === 'rejected');
      if (failed !== undefined) showFailure(failed.reason);
      await client.invalidateQueries({ queryKey: keys.tasks });
      for (const { id } of tasks) await client.invalidateQueries({ queryKey: keys.task(id) });
      return done.filter((one) => one.status === 'fulfilled').length;
    };
    const stopNow = async (tasks: readonly ApiTask[]): Promise<void> => {
      await each(tasks, async ({ id }) => {
        const again = stopped.current.has(id);
        stopped.current.add(id);
        return api.stop(id, again);
      });
    };
    const made: TaskActions = {
      askToStop: (task) =>
        askFirst({
          title: `Stop ${cleanLine(task.title, 80)}?`,
          label: stopped.current.has(task.id) ? 'Kill' : 'Stop',
          about: 'Its work so far is kept, and it can continue later.',
          do: () => made.stop([task]),
        }),
      askToRestart: (task) =>
        askFirst({
          title: `Restart ${cleanLine(task.title, 80)}?`,
          label: 'Restart',
          about: 'The goal starts again from the same commit. The earlier result stays on its own branch.',
          do: () => made.restart([task]),
        }),
      stop(tasks) {
        const live = tasks.filter((task) => task.live);
        if (live.length === 0) return;
        if (live.length === 1) {
          const again = stopped.current.has(live[0]?.id ?? '');
          showToast(again ? 'Task killed' : 'Stopping. Stop again to kill the task');
          void stopNow(live);
          return;
        }
        const timer = setTimeout(() => void stopNow(live), UNDO_MS);
        showToast(`Stopping ${plural(live.length, 'task')}`, {
          action: { label: 'Undo', do: () => clearTimeout(timer) },
        });
      },
      restart(tasks) {
        void each(tasks, async ({ id }) => api.restart(id)).then((count) => {
          for (const { id } of tasks) stopped.current.delete(id);
          if (count > 0) showToast(`${plural(count, 'task')} restarted in a clean sandbox`);
        });
      },
      undoMerge(task) {
        void each([task], async ({ id }) => showToast(cleanLine((await api.undo(id)).text)));
      },
      continueTask(task) {
        stopped.current.delete(task.id);
        void each([task], async ({ id }) => api.continue(id));
      },
      fork: (task) => setAsking({ what: 'fork', task }),
      remove: (tasks, after) => setAsking({ what: 'remove', tasks, after }),
    };
    return made;
  }, [client, askFirst]);
  const close = (): void => setAsking(null);
  return (
    <Context value={actions}>
      {children}
      {confirm}
      {asking?.what === 'remove' ? <RemoveDialog tasks={asking.tasks} after={asking.after} onClose={close} /> : null}
      {asking?.what === 'fork' ? (
        <Dialog open onClose={close} title="Fork" about="Starts a new task from this task’s files, on its own branch.">
          <ForkForm task={asking.task} onDone={close} />
        </Dialog>
      ) : null}
    </Context>
  );
}

function RemoveDialog({
  tasks,
  after,
  onClose,
}: {
  tasks: readonly ApiTask[];
  after: (() => void) | undefined;
  onClose: () => void;
}): ReactNode {
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  const unmerged = tasks.filter(({ state, files }) => state !== 'merged' && state !== 'discarded' && (files ?? 0) > 0);
  const remove = async (): Promise<void> => {
    setBusy(true);
    const done = await Promise.allSettled(tasks.map(async ({ id }) => api.removeTask(id, { force: true })));
    const failed = done.find((one) => one.status === 'rejected');
    await client.invalidateQueries({ queryKey: keys.tasks });
    onClose();
    if (failed !== undefined) showFailure(failed.reason);
    else {
      showToast(`${plural(tasks.length, 'task')} removed`);
      after?.();
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={tasks.length === 1 ? 'Remove this task?' : `Remove ${tasks.length} tasks?`}
      about="Deletes sandbox, history and branch. This cannot be undone."
    >
      <ul className="mb-4 max-h-48 overflow-y-auto">
        {tasks.map((task) => (
          <li key={task.id} className="truncate py-1">
            {cleanLine(task.title, 120)}
          </li>
        ))}
      </ul>
      {unmerged.length === 0 ? null : (
        <p className="mb-4 rounded-md bg-warn-bg p-3 text-warn">
          {plural(unmerged.length, 'task has', 'tasks have')} unmerged changes, which will be lost.
        </p>
      )}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button look="danger" disabled={busy} onClick={() => void remove()}>
          Remove
        </Button>
      </div>
    </Dialog>
  );
}
