// web/src/task/header.tsx: the title, state and actions of a task.
import { useNavigate } from '@tanstack/react-router';
import { Ellipsis, GitFork, RotateCcw, Square, Trash2, Undo2 } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { useAction } from '../actions/registry.ts';
import { cleanLine } from '../text/clean.ts';
import { BackLink, Button, IconButton, LinkButton } from '../ui/button.tsx';
import { Cost, WorkTime } from '../ui/figures.tsx';
import { Menu, MenuItem } from '../ui/menu.tsx';
import { StateBadge } from '../ui/state-badge.tsx';
import { MergedLine } from '../tasks/merged-line.tsx';
import { useTaskActions } from '../tasks/task-actions.tsx';
import { SandboxChip } from './sandbox-chip.tsx';

export type Panel = 'terminal' | 'logs';

export function TaskHeader({ task }: { task: ApiTaskDetail }): ReactNode {
  const actions = useTaskActions();
  const navigate = useNavigate();
  const at = { project: task.project, task: task.id };
  const can = (what: ApiTaskDetail['can'][number]): boolean => task.can.includes(what);
  const toList = (): void => void navigate({ to: '/p/$project', params: { project: task.project }, search: {} });
  const review = (): void => void navigate({ to: '/p/$project/t/$task/changes', params: at, search: {} });
  const undo = (): void => actions.undoMerge(task);
  useAction('undo-merge', undo, can('undo'));
  useAction('stop', () => actions.askToStop(task), can('stop'));
  useAction('restart', () => actions.askToRestart(task), can('restart'));
  useAction('fork', () => actions.fork(task), can('fork'));
  useAction('review', review, can('review'));
  return (
    <header className="border-b border-line px-4 py-3">
      <div className="flex flex-wrap items-start gap-x-4 gap-y-2">
        <div className="min-w-0 grow basis-80">
          <p className="mb-1 text-sm">
            <BackLink to="/p/$project" params={{ project: task.project }} search={{}}>
              Tasks
            </BackLink>
          </p>
          <h1 className="line-clamp-2 text-xl font-semibold wrap-anywhere">{cleanLine(task.title, 200)}</h1>
          <p className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-muted">
            <StateBadge state={task.state} pill />
            <span className="wrap-anywhere">{cleanLine(task.name)}</span>
            {task.agentTitle === null ? null : (
              <span>
                {cleanLine(task.agentTitle)}
                {task.model === null ? '' : `, ${cleanLine(task.model)}`}
              </span>
            )}
            {task.baseRef === null && task.base === null ? null : (
              <span>
                from {cleanLine(task.baseRef ?? 'a commit')}{' '}
                <span className="font-mono">{cleanLine(task.base?.slice(0, 7) ?? '')}</span>
              </span>
            )}
            <WorkTime time={task.time} waits />
            <Cost costMicros={task.costMicros} tokens={task.tokens} />
            <SandboxChip task={task} />
          </p>
          {can('undo') ? (
            <div className="mt-2">
              <MergedLine task={task} onUndo={undo} />
            </div>
          ) : null}
          {task.reason === null ? null : (
            <p
              className={`mt-2 wrap-anywhere ${task.state === 'failed' || task.state === 'damaged' ? 'text-bad' : 'text-warn'}`}
            >
              {cleanLine(task.reason)}
            </p>
          )}
        </div>
        <div className="flex flex-wrap items-center gap-2">
          {can('review') ? (
            <LinkButton to="/p/$project/t/$task/changes" params={at} search={{}} look="primary">
              Review changes{task.files === null ? '' : ` ${task.files}`}
            </LinkButton>
          ) : null}
          {can('stop') ? (
            <Button onClick={() => actions.stop([task])}>
              <Square size={14} aria-hidden /> Stop
            </Button>
          ) : null}
          {can('continue') && task.state !== 'ready' && task.state !== 'merged' ? (
            <Button onClick={() => actions.continueTask(task)}>Continue</Button>
          ) : null}
          {can('restart') && (task.state === 'failed' || task.state === 'stopped' || task.state === 'interrupted') ? (
            <Button onClick={() => actions.restart([task])}>
              <RotateCcw size={14} aria-hidden /> Restart
            </Button>
          ) : null}
          <Menu
            trigger={
              <IconButton label="More actions" look="plain">
                <Ellipsis size={16} aria-hidden />
              </IconButton>
            }
          >
            <MenuItem
              icon={<RotateCcw size={16} aria-hidden />}
              disabled={!can('restart')}
              onPick={() => actions.restart([task])}
            >
              Restart in a clean sandbox
            </MenuItem>
            <MenuItem
              icon={<GitFork size={16} aria-hidden />}
              disabled={!can('fork')}
              onPick={() => actions.fork(task)}
            >
              Fork…
            </MenuItem>
            <MenuItem icon={<Undo2 size={16} aria-hidden />} disabled={!can('undo')} onPick={undo}>
              Undo merge
            </MenuItem>
            <MenuItem
              icon={<Trash2 size={16} aria-hidden />}
              danger
              disabled={task.live}
              onPick={() => actions.remove([task], toList)}
            >
              Remove…
            </MenuItem>
          </Menu>
        </div>
      </div>
    </header>
  );
}
