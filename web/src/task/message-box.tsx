// web/src/task/message-box.tsx: words for the agent: now, when its turn is over, or as the start of another turn.
import { SendHorizontal } from 'lucide-react';
import { useRef } from 'react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { useAction } from '../actions/registry.ts';
import { usePreference } from '../look/preferences.ts';
import { Button } from '../ui/button.tsx';
import { Waiting } from './waiting.tsx';

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
      ? 'The agent waits for your answer.'
      : task.live
        ? 'The agent gets it as soon as it can take it.'
        : 'The agent goes on with this, in the same sandbox.';
  const edit = (words: string): void => {
    setText(text.trim() === '' ? words : `${words}\n\n${text}`);
    box.current?.focus();
  };
  return (
    <>
      <Waiting task={task} onEdit={edit} />
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
