// web/src/review/page.tsx: the changes of a task as they were when the page was opened. Newer changes appear only on request.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { FileSearch, RefreshCw } from 'lucide-react';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiChanges } from '../../../src/protocol/api/review.ts';
import { useAction } from '../actions/registry.ts';
import { api } from '../api/client.ts';
import { keys, useTask } from '../api/queries.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { Empty, Failure, Skeleton } from '../ui/states.tsx';
import { showToast } from '../ui/toasts.tsx';
import { fingerprintOf } from './choice.ts';
import { ReviewTitle } from './title.tsx';

const Screen = lazy(async () => import('./screen.tsx').then(({ ReviewScreen }) => ({ default: ReviewScreen })));
const route = getRouteApi('/p/$project/t/$task/changes');

export function ReviewPage(): ReactNode {
  const { task: id } = route.useParams();
  return <Review key={id} id={id} />;
}

function Review({ id }: { id: string }): ReactNode {
  const { data: task, error: noTask } = useTask(id);
  const latest = useQuery({
    // Reads again when the task makes progress; the page keeps showing the first version.
    queryKey: [...keys.changes(id), useThrottled(task?.seq ?? 0)],
    queryFn: async () => api.changes(id),
    enabled: task !== undefined,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
  const [shown, setShown] = useState<ApiChanges | null>(null);
  const changes = shown ?? latest.data;
  if (shown === null && latest.data !== undefined) setShown(latest.data);

  if (noTask !== null) return <Failure error={noTask} />;
  if (task === undefined || (changes === undefined && latest.error === null)) return <Loading />;
  if (changes === undefined)
    return (
      <>
        <ReviewTitle task={task} />
        <Failure error={latest.error} title="Cannot show the changes" retry={() => void latest.refetch()} />
      </>
    );
  if (changes.files.length === 0)
    return (
      <>
        <ReviewTitle task={task} />
        <Empty icon={<FileSearch size={32} aria-hidden />} title="No changes yet">
          {task.live ? 'The agent has not changed any files yet.' : 'The agent changed no files.'}
          {changes.refused.map(({ path, reason }) => (
            <p key={path}>{reason}</p>
          ))}
        </Empty>
      </>
    );
  const newer = latest.data !== undefined && latest.data.id !== changes.id ? latest.data : null;
  // Of the version that is shown, which files the branch has by now.
  const now = latest.data?.id === changes.id ? latest.data : changes;
  return (
    <Suspense fallback={<Loading />}>
      <Screen
        key={changes.id}
        task={task}
        changes={changes}
        merged={new Set(now.files.filter((file) => file.merged).map(({ n }) => n))}
        newer={newer === null ? null : <Newer from={changes} to={newer} onUpdate={() => setShown(newer)} />}
      />
    </Suspense>
  );
}

/** Keys that change the selection or merge say that they did nothing. */
function Loading(): ReactNode {
  const tell = (): void => showToast('The changes are still loading. Press the key again in a moment.');
  useAction('merge', tell);
  useAction('take-file', tell);
  useAction('take-hunk', tell);
  useAction('viewed', tell);
  return <Skeleton label="Loading changes" />;
}

const REFRESH_EVERY_MS = 3000;

/** The latest value, at most once per interval: a working agent changes it constantly. */
function useThrottled(value: number): number {
  const [shown, setShown] = useState<number | null>(null);
  const last = useRef(0);
  useEffect(() => {
    if (value === 0) return undefined;
    const timer = setTimeout(
      () => {
        last.current = Date.now();
        setShown(value);
      },
      Math.max(0, last.current + REFRESH_EVERY_MS - Date.now()),
    );
    return () => clearTimeout(timer);
  }, [value]);
  return shown ?? value;
}

function Newer({ from, to, onUpdate }: { from: ApiChanges; to: ApiChanges; onUpdate: () => void }): ReactNode {
  const before = new Map(from.files.map((file) => [file.path, fingerprintOf(file)]));
  const gone = from.files.filter(({ path }) => to.files.every((file) => file.path !== path)).length;
  const count = to.files.filter((file) => before.get(file.path) !== fingerprintOf(file)).length + gone;
  return (
    <div role="status" className="flex items-center gap-3 border-b border-line bg-info-bg px-4 py-1.5 text-info">
      <RefreshCw size={16} aria-hidden />
      <span className="grow">
        {count === 0 ? 'Newer changes are available.' : `${plural(count, 'file')} changed since you opened this.`} This
        version can no longer be merged.
      </span>
      <Button size="small" onClick={onUpdate}>
        Update
      </Button>
    </div>
  );
}
