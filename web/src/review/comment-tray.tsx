// web/src/review/comment-tray.tsx: sends all draft comments to the agent as one message.
import { useMutation } from '@tanstack/react-query';
import { Send } from 'lucide-react';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { useAction } from '../actions/registry.ts';
import { api } from '../api/client.ts';
import { clean, cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Failure } from '../ui/states.tsx';
import { showToast } from '../ui/toasts.tsx';
import { isOutdated, messageOf } from './comments.ts';
import { useReview } from './review-state.ts';

const WHEN = {
  now: 'The agent has received them.',
  later: 'Queued until the agent finishes its turn.',
  begun: 'The agent continues with them.',
} as const;

export function CommentTray(): ReactNode {
  const { comments, task, files } = useReview();
  const [open, setOpen] = useState(false);
  const { drafts } = comments;
  const message = messageOf(drafts);
  const send = useMutation({
    mutationFn: async () => api.send(task, message),
    onSuccess: ({ when }) => {
      comments.markSent();
      setOpen(false);
      showToast(`${plural(drafts.length, 'comment')} sent`, { about: WHEN[when] });
    },
  });
  useAction('send-comments', () => setOpen(true), drafts.length > 0);
  if (drafts.length === 0) return null;
  return (
    <>
      <Button look="primary" onClick={() => setOpen(true)}>
        <Send size={16} aria-hidden />
        Send {plural(drafts.length, 'comment')}
      </Button>
      <Dialog
        wide
        open={open}
        onClose={() => setOpen(false)}
        title={`Send ${plural(drafts.length, 'comment')}`}
        about="Sends one message to the same agent in the same sandbox. The agent receives exactly this text:"
      >
        <pre
          className="max-h-[40vh] overflow-y-auto rounded-md border border-line bg-panel p-3 font-mono text-sm wrap-anywhere whitespace-pre-wrap"
          tabIndex={0}
          aria-label="Message"
        >
          {clean(message)}
        </pre>
        <ul className="mt-3 flex flex-col gap-1">
          {drafts.map((comment) => (
            <li key={comment.id} className="flex items-center gap-2 text-sm">
              <span className="min-w-0 grow truncate">
                {cleanLine(comment.path)}: {cleanLine(comment.text, 80)}
              </span>
              {isOutdated(comment, files) ? <span className="shrink-0 text-warn">outdated</span> : null}
              <Button size="small" look="quiet" onClick={() => comments.drop(comment.id)}>
                Delete
              </Button>
            </li>
          ))}
        </ul>
        {send.isError ? <Failure tight error={send.error} /> : null}
        <div className="mt-4 flex justify-end gap-2">
          <Button onClick={() => setOpen(false)}>Cancel</Button>
          <Button look="primary" disabled={send.isPending} onClick={() => send.mutate()}>
            Send to agent
          </Button>
        </div>
      </Dialog>
    </>
  );
}
