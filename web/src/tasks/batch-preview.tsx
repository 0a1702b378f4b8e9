// web/src/tasks/batch-preview.tsx: lists several goals before they start, with an agent choice and a remove button each.
import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import { useAbout, useTasks } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { IconButton } from '../ui/button.tsx';
import { sharedFiles } from './goals.ts';

export function BatchPreview({
  goals,
  agentOf,
  onAgent,
  onRemove,
}: {
  goals: readonly string[];
  agentOf: Readonly<Record<string, string>>;
  onAgent: (goal: string, agent: string) => void;
  onRemove: (at: number) => void;
}): ReactNode {
  const { data: about } = useAbout();
  const { data: tasks } = useTasks();
  const shared = sharedFiles(goals);
  const running = tasks?.tasks.filter(({ group }) => group === 'running' || group === 'needs-you').length ?? 0;
  const limit = tasks?.parallel ?? about?.defaults.parallel ?? 4;
  const waiting = Math.max(0, goals.length - Math.max(0, limit - running));
  return (
    <div className="border-t border-line px-3 py-2">
      <ol className="max-h-64 overflow-y-auto" aria-label="Goals to start">
        {goals.map((goal, at) => (
          <li key={`${at} ${goal}`} className="flex min-h-9 items-center gap-2">
            <span className="tabular w-6 shrink-0 text-right text-muted">{at + 1}</span>
            <span className="min-w-0 grow truncate">{cleanLine(goal)}</span>
            <select
              aria-label={`Agent for goal ${at + 1}`}
              value={agentOf[goal] ?? ''}
              onChange={(event) => onAgent(goal, event.target.value)}
              className="h-7 max-w-36 rounded-md border border-line bg-bg px-1 text-sm"
            >
              <option value="">Selected agent</option>
              {about?.agents
                .filter(({ installed }) => installed)
                .map((agent) => (
                  <option key={agent.name} value={agent.name}>
                    {cleanLine(agent.title)}
                  </option>
                ))}
            </select>
            <IconButton label={`Remove goal ${at + 1}`} size="small" onClick={() => onRemove(at)}>
              <X size={14} aria-hidden />
            </IconButton>
          </li>
        ))}
      </ol>
      <p className="mt-1 text-sm text-muted">
        {running} of {limit} slots used{waiting > 0 ? `; ${waiting} of these goals will be queued` : ''}.
        {shared.length > 0 ? (
          <span className="text-warn">
            {' '}
            Several goals mention{' '}
            {shared
              .slice(0, 3)
              .map((path) => cleanLine(path))
              .join(', ')}
            .
          </span>
        ) : null}
      </p>
    </div>
  );
}
