// web/src/task/message-box.tsx: sends messages to the agent and lists the queued ones.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Clock, SendHorizontal } from 'lucide-react';
import { useRef } from 'react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { useAction } from '../actions/registry.ts';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';
import { usePreference } from '../look/preferences.ts';
import { clean, cleanLine } from '../text/clean.ts';
import { Button } from '../ui/button.tsx';
import { showFailure, showToast } from '../ui/toasts.tsx';

export function MessageBox({
  task,
  send,
  sending,
}: {
  task: ApiTaskDetail;
  send: (text: string) => Promise<boolean>;
  sending: boolean;
}): ReactNode {
  const [text, setText] = usePreference(`message.${task.id}`, '');
  const box = useRef<HTMLTextAreaElement>(null);
  useAction('message', () => box.current?.focus());
  const submit = (): void => {
    if (text.trim() === '' || sending) return;
    void send(text.trim()).then((sent) => sent && setText(''));
  };
  const when =
    task.state === 'needs-you'
      ? 'The agent is waiting for your answer.'
      : task.live
        ? 'The agent receives it as soon as it can.'
        : 'The agent continues with this message in the same sandbox.';
  const edit = (words: string): void => {
    setText(text.trim() === '' ? words : `${words}\n\n${text}`);
    box.current?.focus();
  };
  return (
    <>
      <QueuedMessages task={task} onEdit={edit} />
      <form
        aria-label="Message to the agent"
        className="border-t border-line p-3"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <div className="flex items-end gap-2 rounded-lg border border-line-strong bg-bg p-1.5 focus-within:border-accent">
          <textarea
            ref={box}
            aria-label="Message the agent"
            placeholder={task.state === 'needs-you' ? 'Answer the agent' : 'Message the agent'}
            value={text}
            rows={Math.min(10, text.split('\n').length)}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                submit();
              }
            }}
            className="min-h-8 min-w-0 grow resize-none bg-transparent px-2 py-1.5 outline-none placeholder:text-muted"
          />
          <Button type="submit" look="primary" disabled={text.trim() === '' || sending}>
            <SendHorizontal size={14} aria-hidden /> Send
          </Button>
        </div>
        <p className="mt-1 px-1 text-xs text-muted">{when}</p>
      </form>
    </>
  );
}

/** Messages that the agent has not read yet. The user can edit or withdraw them. */
function QueuedMessages({ task, onEdit }: { task: ApiTaskDetail; onEdit: (text: string) => void }): ReactNode {
  const client = useQueryClient();
  const withdraw = useMutation({
    mutationFn: async ({ id }: { id: string; edit: boolean }) => api.withdraw(task.id, id),
    onSuccess: async ({ text }, { edit }) => {
      if (text === null) showToast('Too late: the agent already has it');
      else if (edit) onEdit(text);
      else showToast('Message withdrawn', { about: 'The agent will not receive it.' });
      await client.invalidateQueries({ queryKey: keys.task(task.id) });
    },
    onError: (error) => showFailure(error, 'The message was not withdrawn'),
  });
  if (task.waiting.length === 0) return null;
  const when = task.live ? 'when the agent finishes its turn' : 'when the agent continues';
  return (
    <ul aria-label="Queued messages" className="max-h-40 overflow-y-auto border-t border-line bg-panel">
      {task.waiting.map(({ id, text }) => (
        <li key={id} className="flex items-start gap-2 border-b border-line px-4 py-2 last:border-b-0">
          <Clock size={16} aria-hidden className="mt-0.5 shrink-0 text-muted" />
          <span className="min-w-0 grow">
            <span className="block text-xs text-muted">Delivered {when}</span>
            <span className="line-clamp-3 whitespace-pre-wrap wrap-anywhere">{clean(text)}</span>
          </span>
          {[true, false].map((edit) => (
            <Button
              key={String(edit)}
              size="small"
              look="quiet"
              aria-label={`${edit ? 'Edit' : 'Withdraw'}: ${cleanLine(text, 60)}`}
              disabled={withdraw.isPending}
              onClick={() => withdraw.mutate({ id, edit })}
            >
              {edit ? 'Edit' : 'Withdraw'}
            </Button>
          ))}
        </li>
      ))}
    </ul>
  );
}
