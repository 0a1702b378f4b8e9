// web/src/tasks/task-row.tsx: one row of the task list, with the most useful next action.
import { Link, useNavigate } from '@tanstack/react-router';
import { Ban, ChevronDown, ChevronRight, Columns2, Ellipsis, TriangleAlert } from 'lucide-react';
import { memo } from 'react';
import type { ReactNode } from 'react';
import type { ApiTask } from '../../../src/protocol/api/api.ts';
import { cleanLine } from '../text/clean.ts';
import { Button, IconButton, LinkButton } from '../ui/button.tsx';
import { Checkbox } from '../ui/fields.tsx';
import { ChecksStatus } from '../ui/checks-status.tsx';
import { Cost, DiffStat, WorkTime, Files } from '../ui/figures.tsx';
import { Menu, MenuItem } from '../ui/menu.tsx';
import { StateBadge } from '../ui/state-badge.tsx';
import { mergedWords } from './merged-line.tsx';
import { useTaskActions } from './task-actions.tsx';

/** All rows share these columns so that they align. In narrow windows, hidden columns move below the goal. */
const COLUMNS =
  'grid grid-cols-[1.5rem_minmax(0,1fr)_auto] items-center gap-x-3 @2xl:grid-cols-[1.5rem_7.5rem_minmax(0,1fr)_4rem_8.5rem_7.5rem] @5xl:grid-cols-[1.5rem_7.5rem_minmax(0,1.4fr)_minmax(0,1fr)_4rem_4.5rem_8.5rem_7.5rem]';
const WIDE = 'hidden @2xl:block';
const WIDEST = 'hidden @5xl:block';

interface RowProps {
  readonly task: ApiTask;
  readonly index: number;
  readonly current: boolean;
  readonly selected: boolean;
  readonly nested: boolean;
  readonly onSelect: (task: ApiTask, on: boolean) => void;
  readonly onFocus: (id: string) => void;
}

export const TaskRow = memo(function TaskRow(props: RowProps): ReactNode {
  const { task, index, current, selected, nested, onSelect, onFocus } = props;
  return (
    <div
      role="row"
      aria-rowindex={index}
      data-task={task.id}
      onFocus={() => onFocus(task.id)}
      className={`${COLUMNS} min-h-14 border-b border-line px-3 py-2 hover:bg-panel ${selected ? 'bg-info-bg' : current ? 'bg-panel' : ''}`}
    >
      <span role="cell">
        <Checkbox
          checked={selected}
          onChange={(on) => onSelect(task, on)}
          label={`Select ${cleanLine(task.title, 60)}`}
        />
      </span>
      <span role="cell" className={`${WIDE} ${nested ? 'pl-4' : ''}`}>
        <StateBadge state={task.state} />
      </span>
      <div role="cell" className={`min-w-0 ${nested ? '@2xl:pl-4' : ''}`}>
        <span className="mb-0.5 block @2xl:hidden">
          <StateBadge state={task.state} />
        </span>
        <Link
          id={`row-${task.id}`}
          to="/p/$project/t/$task"
          params={{ project: task.project, task: task.id }}
          search={{}}
          className="line-clamp-2 font-medium wrap-anywhere hover:underline @5xl:line-clamp-1"
        >
          {cleanLine(task.title, 200)}
        </Link>
        <p className="truncate text-sm text-muted">
          {cleanLine(task.name)}
          {task.agentTitle === null ? '' : ` · ${cleanLine(task.agentTitle)}`}
        </p>
        <p className="flex flex-wrap items-center gap-x-2 text-sm text-muted @2xl:hidden">
          <WorkTime time={task.time} />
          <Cost costMicros={task.costMicros} tokens={task.tokens} />
          <ChangeCounts task={task} />
        </p>
        <div className="text-sm @5xl:hidden">
          <LastAction task={task} />
        </div>
      </div>
      <div role="cell" className={`${WIDEST} min-w-0 text-sm`}>
        <LastAction task={task} />
      </div>
      <span role="cell" className={`${WIDE} text-right text-sm text-muted`}>
        <WorkTime time={task.time} />
        <span className="block @5xl:hidden">
          <Cost costMicros={task.costMicros} tokens={task.tokens} />
        </span>
      </span>
      <span role="cell" className={`${WIDEST} text-right text-sm text-muted`}>
        <Cost costMicros={task.costMicros} tokens={task.tokens} />
      </span>
      <span role="cell" className="hidden justify-end gap-2 text-sm text-muted @2xl:flex">
        <ChangeCounts task={task} />
      </span>
      <span role="cell" className="flex items-center justify-end gap-1">
        <NextAction task={task} />
        <More task={task} />
      </span>
    </div>
  );
});

function ChangeCounts({ task: { risky, files, added, removed } }: { task: ApiTask }): ReactNode {
  return (
    <>
      {risky !== null && risky > 0 ? (
        <TriangleAlert size={16} className="shrink-0 text-warn" aria-label={`${risky} can run code`} />
      ) : null}
      {(files ?? 0) > 0 ? (
        <>
          <Files files={files} /> <DiffStat added={added} removed={removed} />
        </>
      ) : null}
    </>
  );
}

function LastAction({ task }: { task: ApiTask }): ReactNode {
  const blocked = task.blockedHosts;
  const words = task.reason ?? task.doing;
  return (
    <>
      {words === null ? null : (
        <p className={`line-clamp-2 wrap-anywhere ${REASONS[task.state] ?? 'text-muted'}`} title={cleanLine(words)}>
          {cleanLine(words, 160)}
        </p>
      )}
      {task.merged === null ? null : <p className="text-ok wrap-anywhere">{mergedWords(task.merged)}</p>}
      {task.checks === null ? null : <ChecksStatus checks={task.checks} brief />}
      {blocked.length === 0 ? null : (
        <p
          className="flex min-w-0 items-center gap-1 text-bad"
          title={blocked.map((host) => cleanLine(host)).join(', ')}
        >
          <Ban size={14} aria-label="Blocked" className="shrink-0" />
          <span className="truncate">
            {cleanLine(blocked[0] ?? '', 80)}
            {blocked.length > 1 ? ` and ${blocked.length - 1} more` : ''}
          </span>
        </p>
      )}
    </>
  );
}

const REASONS: Partial<Record<ApiTask['state'], string>> = {
  'needs-you': 'text-warn',
  failed: 'text-bad',
  interrupted: 'text-warn',
  damaged: 'text-bad',
};

const NEEDS: Readonly<Record<NonNullable<ApiTask['needs']>, string>> = {
  answer: 'Answer',
  host: 'Allow',
  model: 'Open',
  prompt: 'Open',
  look: 'Open',
};

function NextAction({ task }: { task: ApiTask }): ReactNode {
  const actions = useTaskActions();
  const at = { params: { project: task.project, task: task.id } } as const;
  switch (task.state) {
    case 'needs-you':
      return (
        <LinkButton to="/p/$project/t/$task" {...at} search={{}} look="primary" size="small">
          {NEEDS[task.needs ?? 'look']}
        </LinkButton>
      );
    case 'ready':
      return (
        <LinkButton to="/p/$project/t/$task/changes" {...at} search={{}} size="small">
          Review
        </LinkButton>
      );
    case 'failed':
      return task.kind === 'agent' ? (
        <Button size="small" onClick={() => actions.restart([task])}>
          Restart
        </Button>
      ) : null;
    case 'stopped':
    case 'interrupted':
      return task.kind === 'agent' ? (
        <Button size="small" onClick={() => actions.continueTask(task)}>
          Continue
        </Button>
      ) : null;
    case 'queued':
    case 'preparing':
    case 'running':
      return task.live ? (
        <Button size="small" onClick={() => actions.stop([task])}>
          Stop
        </Button>
      ) : null;
    case 'merged':
      return task.merged === null || task.live ? null : (
        <Button size="small" onClick={() => actions.undoMerge(task)}>
          Undo merge
        </Button>
      );
    case 'no-changes':
    case 'discarded':
    case 'damaged':
      return null;
  }
}

function More({ task }: { task: ApiTask }): ReactNode {
  const actions = useTaskActions();
  const navigate = useNavigate();
  const params = { project: task.project, task: task.id };
  return (
    <Menu
      trigger={
        <IconButton label={`More actions for ${cleanLine(task.name)}`} size="small">
          <Ellipsis size={16} aria-hidden />
        </IconButton>
      }
    >
      <MenuItem onPick={() => void navigate({ to: '/p/$project/t/$task', params, search: {} })}>Open</MenuItem>
      <MenuItem onPick={() => void navigate({ to: '/p/$project/t/$task/changes', params, search: {} })}>
        Review changes
      </MenuItem>
      <MenuItem disabled={!task.live} onPick={() => actions.stop([task])}>
        Stop
      </MenuItem>
      <MenuItem disabled={task.live || task.kind !== 'agent'} onPick={() => actions.restart([task])}>
        Restart
      </MenuItem>
      <MenuItem disabled={task.kind !== 'agent'} onPick={() => actions.fork(task)}>
        Fork…
      </MenuItem>
      <MenuItem disabled={task.live || task.merged === null} onPick={() => actions.undoMerge(task)}>
        Undo merge
      </MenuItem>
      <MenuItem danger disabled={task.live} onPick={() => actions.remove([task])}>
        Remove…
      </MenuItem>
    </Menu>
  );
}

/** Attempts at one goal share an expandable row. */
export function AttemptsRow({
  tasks,
  index,
  open,
  onToggle,
}: {
  tasks: readonly ApiTask[];
  index: number;
  open: boolean;
  onToggle: () => void;
}): ReactNode {
  const [first, second] = tasks;
  if (first === undefined) return null;
  const Sign = open ? ChevronDown : ChevronRight;
  return (
    <div
      role="row"
      aria-rowindex={index}
      className={`${COLUMNS} min-h-14 border-b border-line px-3 py-2 hover:bg-panel`}
    >
      <span role="cell">
        <IconButton
          label={open ? 'Hide attempts' : 'Show attempts'}
          aria-expanded={open}
          size="small"
          onClick={onToggle}
        >
          <Sign size={16} aria-hidden />
        </IconButton>
      </span>
      <span role="cell" className={`${WIDE} font-medium text-muted`}>
        {tasks.length} attempts
      </span>
      <div role="cell" className="min-w-0">
        <button type="button" onClick={onToggle} className="block max-w-full truncate text-left font-medium">
          {cleanLine(first.title, 200)}
        </button>
        <p className="truncate text-sm text-muted">
          {[...new Set(tasks.map((task) => cleanLine(task.agentTitle ?? '')))].join(' and ')}
        </p>
        <p className="flex flex-wrap gap-x-3 text-sm @5xl:hidden">
          {tasks.map((task) => (
            <StateBadge key={task.id} state={task.state} />
          ))}
        </p>
      </div>
      <div role="cell" className="hidden min-w-0 flex-wrap gap-x-3 text-sm @5xl:flex">
        {tasks.map((task) => (
          <StateBadge key={task.id} state={task.state} />
        ))}
      </div>
      <span role="cell" className={WIDE} />
      <span role="cell" className={WIDEST} />
      <span role="cell" className={WIDE} />
      <span role="cell" className="flex justify-end">
        {second === undefined ? null : (
          <LinkButton
            to="/p/$project/compare/$a/$b"
            params={{ project: first.project, a: first.id, b: second.id }}
            search={{}}
            size="small"
          >
            <Columns2 size={14} aria-hidden /> Compare
          </LinkButton>
        )}
      </span>
    </div>
  );
}
