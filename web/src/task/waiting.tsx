// web/src/task/waiting.tsx: messages that the agent has not had yet: they can be taken back, or changed.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Clock } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';
import { clean, cleanLine } from '../text/clean.ts';
import { Button } from '../ui/button.tsx';
import { say, sayFailure } from '../ui/toasts.tsx';

export function Waiting({ task, onEdit }: { task: ApiTaskDetail; onEdit: (text: string) => void }): ReactNode {
  const client = useQueryClient();
  const withdraw = useMutation({
    mutationFn: async ({ id }: { id: string; edit: boolean }) => api.withdraw(task.id, id),
    onSuccess: async ({ text }, { edit }) => {
      if (text === null) say('Too late: the agent has it');
      else if (edit) onEdit(text);
      else say('Taken back', { about: 'The agent never gets it.' });
      await client.invalidateQueries({ queryKey: keys.task(task.id) });
    },
    onError: (error) => sayFailure(error, 'The message was not taken back'),
  });
  if (task.waiting.length === 0) return null;
  const when = task.live ? 'when its turn is over' : 'when it goes on';
  return (
    <ul aria-label="Messages that wait" className="max-h-40 overflow-y-auto border-t border-line bg-panel">
      {task.waiting.map(({ id, text }) => (
        <li key={id} className="flex items-start gap-2 border-b border-line px-4 py-2 last:border-b-0">
          <Clock size={16} aria-hidden className="mt-0.5 shrink-0 text-muted" />
          <span className="min-w-0 grow">
            <span className="block text-xs text-muted">The agent gets this {when}</span>
            <span className="line-clamp-3 whitespace-pre-wrap wrap-anywhere">{clean(text)}</span>
          </span>
          {[true, false].map((edit) => (
            <Button
              key={String(edit)}
              size="small"
              look="quiet"
              aria-label={`${edit ? 'Edit' : 'Take back'}: ${cleanLine(text, 60)}`}
              disabled={withdraw.isPending}
              onClick={() => withdraw.mutate({ id, edit })}
            >
              {edit ? 'Edit' : 'Take back'}
            </Button>
          ))}
        </li>
      ))}
    </ul>
  );
}
