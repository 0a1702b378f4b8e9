// web/src/review/title.tsx: the title bar of a review.
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { cleanLine } from '../text/clean.ts';
import { BackLink } from '../ui/button.tsx';
import { Cost, WorkTime } from '../ui/figures.tsx';
import { StateBadge } from '../ui/state-badge.tsx';

export function ReviewTitle({ task, children }: { task: ApiTaskDetail; children?: ReactNode }): ReactNode {
  return (
    <div className="flex min-h-12 shrink-0 items-center gap-x-3 border-b border-line px-4 py-2">
      <BackLink to="/p/$project/t/$task" params={{ project: task.project, task: task.id }} search={{}}>
        Task
      </BackLink>
      <h1 className="min-w-0 truncate font-semibold">
        <span className="unseen">Review: </span>
        {cleanLine(task.title)}
      </h1>
      <StateBadge state={task.state} pill />
      <span className="hidden shrink-0 gap-3 text-sm text-muted sm:flex">
        <WorkTime time={task.time} />
        <Cost costMicros={task.costMicros} tokens={task.tokens} />
      </span>
      <span className="grow" />
      {children}
    </div>
  );
}
