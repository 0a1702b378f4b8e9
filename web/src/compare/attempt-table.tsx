// web/src/compare/attempt-table.tsx: facts about the two attempts in two columns.
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import type { ApiChanges } from '../../../src/protocol/api/review.ts';
import { canRun } from '../review/choice.ts';
import { useTaskActions } from '../tasks/task-actions.tsx';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { ChecksStatus } from '../ui/checks-status.tsx';
import { Cost, DiffStat, WorkTime } from '../ui/figures.tsx';
import { StateBadge } from '../ui/state-badge.tsx';

export interface Side {
  readonly task: ApiTaskDetail;
  readonly changes: ApiChanges;
}

export function AttemptTable({ a, b }: { a: Side; b: Side }): ReactNode {
  const row = (name: string, show: (side: Side) => ReactNode): ReactNode => (
    <tr className="border-t border-line">
      <th scope="row" className="py-1.5 pr-2 text-left text-sm font-normal text-muted sm:pr-4">
        {name}
      </th>
      <td className="py-1.5 pr-2 wrap-anywhere sm:pr-4">{show(a)}</td>
      <td className="py-1.5 wrap-anywhere">{show(b)}</td>
    </tr>
  );
  return (
    <table className="w-full max-w-4xl table-fixed">
      <thead>
        <tr>
          <th scope="col" className="w-20 sm:w-44">
            <span className="unseen">Property</span>
          </th>
          <Head letter="A" task={a.task} />
          <Head letter="B" task={b.task} />
        </tr>
      </thead>
      <tbody>
        {row('Agent', ({ task }) => cleanLine(task.agentTitle ?? task.agent ?? 'a command'))}
        {row('State', ({ task }) => (
          <StateBadge state={task.state} />
        ))}
        {row('Checks', ({ task }) => (
          <ChecksStatus checks={task.checks} />
        ))}
        {row('Time, cost', ({ task }) => (
          <span className="flex flex-wrap gap-x-3">
            <WorkTime time={task.time} waits />
            <Cost costMicros={task.costMicros} tokens={task.tokens} />
          </span>
        ))}
        {row('Files, lines', ({ changes }) => (
          <span className="flex flex-wrap gap-x-3">
            {plural(changes.files.length, 'file')}
            <DiffStat added={changes.added} removed={changes.removed} />
          </span>
        ))}
        {row('Can run code', ({ changes }) => {
          const risky = changes.files.filter(canRun);
          return risky.length === 0 ? (
            'none'
          ) : (
            <span className="text-warn">
              {risky.length}:{' '}
              {risky
                .slice(0, 3)
                .map(({ path }) => cleanLine(path, 60))
                .join(', ')}
            </span>
          );
        })}
        {row('Blocked hosts', ({ task }) =>
          task.blockedHosts.length === 0
            ? 'none'
            : task.blockedHosts
                .slice(0, 5)
                .map((host) => cleanLine(host))
                .join(', '),
        )}
      </tbody>
    </table>
  );
}

function Head({ letter, task }: { letter: string; task: ApiTaskDetail }): ReactNode {
  const actions = useTaskActions();
  return (
    <th scope="col" className="py-1.5 pr-2 text-left font-medium sm:pr-4">
      <span className="flex flex-wrap items-center gap-x-2 sm:flex-nowrap">
        <span className="flex size-6 shrink-0 items-center justify-center rounded-md bg-raised font-mono text-sm">
          {letter}
        </span>
        <Link
          to="/p/$project/t/$task"
          params={{ project: task.project, task: task.id }}
          search={{}}
          title={cleanLine(task.name)}
          className="min-w-0 truncate underline underline-offset-2"
        >
          {cleanLine(task.name)}
        </Link>
        <Button size="small" look="quiet" aria-label={`Remove ${letter}`} onClick={() => actions.remove([task])}>
          Remove
        </Button>
      </span>
    </th>
  );
}
