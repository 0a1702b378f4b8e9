// web/src/tasks/bulk-bar.tsx: actions for the selected tasks.
import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiTask } from '../../../src/protocol/api/api.ts';
import { Button, IconButton, LinkButton } from '../ui/button.tsx';
import { useTaskActions } from './task-actions.tsx';

export function BulkBar({ tasks, onClear }: { tasks: readonly ApiTask[]; onClear: () => void }): ReactNode {
  const actions = useTaskActions();
  if (tasks.length === 0) return null;
  const [a, b] = tasks;
  const ended = tasks.filter(({ live }) => !live);
  return (
    <div
      role="toolbar"
      aria-label="Selected tasks"
      className="sticky bottom-4 mx-auto mt-4 flex w-fit max-w-full flex-wrap items-center gap-2 rounded-lg border border-line bg-bg p-2 shadow-pop"
    >
      <span className="tabular px-2 font-medium">{tasks.length} selected</span>
      <Button size="small" disabled={!tasks.some(({ live }) => live)} onClick={() => actions.stop(tasks)}>
        Stop
      </Button>
      <Button
        size="small"
        disabled={!ended.some(({ kind }) => kind === 'agent')}
        onClick={() => actions.restart(ended.filter(({ kind }) => kind === 'agent'))}
      >
        Restart
      </Button>
      {tasks.length === 2 && a !== undefined && b !== undefined ? (
        <LinkButton
          size="small"
          to="/p/$project/compare/$a/$b"
          params={{ project: a.project, a: a.id, b: b.id }}
          search={{}}
        >
          Compare
        </LinkButton>
      ) : null}
      <Button size="small" look="danger" disabled={ended.length === 0} onClick={() => actions.remove(ended, onClear)}>
        Remove…
      </Button>
      <IconButton label="Clear selection" size="small" onClick={onClear}>
        <X size={14} aria-hidden />
      </IconButton>
    </div>
  );
}
