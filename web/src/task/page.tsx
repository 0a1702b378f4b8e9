// web/src/task/page.tsx: the live page of one task: timeline on the left, results on the right.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useMemo, useRef } from 'react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { useAction } from '../actions/registry.ts';
import { api } from '../api/client.ts';
import { keys, useTask } from '../api/queries.ts';
import type { EventLogState } from '../live/event-log.ts';
import { TaskActionsProvider } from '../tasks/task-actions.tsx';
import { Failure, Skeleton } from '../ui/states.tsx';
import { showToast, showFailure } from '../ui/toasts.tsx';
import { TaskHeader } from './header.tsx';
import type { Panel } from './header.tsx';
import { FILTERS } from './item.ts';
import type { ItemContext } from './items.tsx';
import { MessageBox } from './message-box.tsx';
import { Side } from './side.tsx';
import { Timeline } from './timeline.tsx';
import { useItems, useLog } from './use-log.ts';

const TerminalPane = lazy(async () => import('./terminal-pane.tsx'));
const LogPane = lazy(async () => import('./log-pane.tsx'));
const route = getRouteApi('/p/$project/t/$task');

export function TaskPage(): ReactNode {
  const { task: id } = route.useParams();
  const { data: task, error, refetch } = useTask(id);
  if (task === undefined)
    return (
      <>
        <h1 className="unseen">Task</h1>
        {error === null ? (
          <Skeleton label="Loading the task" />
        ) : (
          <Failure error={error} retry={() => void refetch()} title="Cannot show this task" />
        )}
      </>
    );
  return (
    <TaskActionsProvider>
      <Open key={id} task={task} />
    </TaskActionsProvider>
  );
}

function Open({ task }: { task: ApiTaskDetail }): ReactNode {
  const { show, panel } = route.useSearch();
  const navigate = route.useNavigate();
  const { log, state } = useLog(task.id);
  const items = useItems(state);
  const filter = FILTERS.find((one) => one === show) ?? 'all';
  useDetailRefresh(task.id, state);

  const sending = useSend(task.id);
  const sendable = task.can.includes('send');
  const send = sendable ? (text: string): void => sending.mutate(text) : null;
  const context = useMemo<ItemContext>(
    () => ({ task: task.id, live: task.live, asks: task.asks, send }),
    // `send` is a new function on every render but always does the same.
    // oxlint-disable-next-line react/exhaustive-deps
    [task.id, task.live, task.asks, sendable],
  );
  const open = (next: Panel | undefined): void =>
    void navigate({ search: (old) => ({ ...old, panel: next }), replace: true });
  const toggle = (wanted: Panel): void => open(panel === wanted ? undefined : wanted);
  useAction('terminal', () => toggle('terminal'), task.can.includes('terminal') || panel === 'terminal');
  useAction('logs', () => toggle('logs'));

  return (
    <div className="flex min-h-full flex-col lg:h-full">
      <TaskHeader task={task} />
      <div className="grid min-h-0 grow grid-cols-[minmax(0,1fr)] lg:grid-cols-[minmax(0,1fr)_20rem] xl:grid-cols-[minmax(0,1fr)_24rem]">
        <div className="flex h-[65vh] min-h-96 flex-col lg:h-auto lg:min-h-0">
          <Timeline
            items={items}
            log={log}
            state={state}
            filter={filter}
            onFilter={(next) =>
              void navigate({ search: (old) => ({ ...old, show: next === 'all' ? undefined : next }), replace: true })
            }
            context={context}
          />
          <Suspense fallback={null}>
            {panel === 'terminal' ? <TerminalPane task={task} onClose={() => open(undefined)} /> : null}
            {panel === 'logs' ? <LogPane task={task} log={log} state={state} onClose={() => open(undefined)} /> : null}
          </Suspense>
          {sendable ? (
            <MessageBox
              task={task}
              sending={sending.isPending}
              send={async (text) =>
                sending.mutateAsync(text).then(
                  () => true,
                  () => false,
                )
              }
            />
          ) : null}
        </div>
        <div className="min-h-0 border-t border-line lg:overflow-y-auto lg:border-t-0 lg:border-l">
          <Side task={task} send={send} onPanel={toggle} />
        </div>
      </div>
    </div>
  );
}

function useSend(task: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (text: string) => api.send(task, text),
    onSuccess: async ({ when }) => {
      if (when === 'later') showToast('Queued until the agent finishes its turn.');
      if (when === 'begun') showToast('The agent continues with your message.');
      await client.invalidateQueries({ queryKey: keys.task(task) });
    },
    onError: (error) => showFailure(error, 'The message was not sent'),
  });
}

/** Reads details that live rows lack (files, asks, possible actions) again after events that change them. */
function useDetailRefresh(task: string, { events }: EventLogState): void {
  const client = useQueryClient();
  const last = events.findLast(({ type }) => CHANGING.test(type))?.seq ?? 0;
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    // The first events count as well: they may be newer than the details that were read at the same time.
    if (last === 0) return;
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void client.invalidateQueries({ queryKey: keys.task(task) });
    }, REREAD_MS);
    // Only a new event of these kinds matters.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [client, task, last]);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [task],
  );
}

const REREAD_MS = 300;
const CHANGING = /^(run\.|turn\.|network\.|service\.|changes\.|agent\.(asked|used|finished)|message\.|tool\.finished)/;
