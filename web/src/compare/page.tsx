// web/src/compare/page.tsx: compares two attempts at one goal.
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import type { ReactNode } from 'react';
import { api } from '../api/client.ts';
import { keys, useTask } from '../api/queries.ts';
import { TaskActionsProvider } from '../tasks/task-actions.tsx';
import { cleanLine } from '../text/clean.ts';
import { BackLink } from '../ui/button.tsx';
import { Failure, Skeleton } from '../ui/states.tsx';
import type { Side } from './attempt-table.tsx';

const Screen = lazy(async () => import('./screen.tsx').then(({ CompareScreen }) => ({ default: CompareScreen })));
const route = getRouteApi('/p/$project/compare/$a/$b');

export function ComparePage(): ReactNode {
  const { project, a, b } = route.useParams();
  const [one, other] = [useSide(a), useSide(b)];
  const error = one.error ?? other.error;
  return (
    <TaskActionsProvider>
      <div className="flex min-h-full flex-col lg:[@media(min-height:45rem)]:h-full">
        <div className="flex min-h-12 shrink-0 items-center gap-3 border-b border-line px-4 py-2">
          <BackLink to="/p/$project" params={{ project }} search={{}}>
            Tasks
          </BackLink>
          <h1 className="min-w-0 truncate font-semibold">
            <span className="unseen">Compare: </span>
            {cleanLine(one.side?.task.title ?? `${a} and ${b}`)}
          </h1>
        </div>
        {error === null ? null : <Failure error={error} title="Cannot compare these attempts" />}
        {one.side !== null && other.side !== null ? (
          <Suspense fallback={<Skeleton label="Loading attempts" />}>
            <Screen key={`${one.side.changes.id} ${other.side.changes.id}`} a={one.side} b={other.side} />
          </Suspense>
        ) : error === null ? (
          <Skeleton label="Loading attempts" />
        ) : null}
      </div>
    </TaskActionsProvider>
  );
}

function useSide(id: string): { side: Side | null; error: unknown } {
  const task = useTask(id);
  const changes = useQuery({
    queryKey: [...keys.changes(id), 'compared'],
    queryFn: async () => api.changes(id),
    gcTime: 0,
  });
  const side =
    task.data !== undefined && changes.data !== undefined ? { task: task.data, changes: changes.data } : null;
  return { side, error: task.error ?? changes.error };
}
