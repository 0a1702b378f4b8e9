// web/src/review/comment-box.tsx: the form for a comment on lines, and the comment once written.
import { MessageSquare } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiFile } from '../../../src/protocol/api/review.ts';
import { clean, cleanLine } from '../text/clean.ts';
import { Button } from '../ui/button.tsx';
import { FIELD } from '../ui/fields.tsx';
import { fingerprintOf } from './choice.ts';
import { snippetOf } from './comments.ts';
import type { Comment } from './comments.ts';
import { linesOfText, useReview } from './review-state.ts';

const CARD = 'mx-3 my-2 max-w-3xl rounded-lg border bg-bg p-3 font-sans text-base text-text';

const linesIn = ({ from, to }: { from: number; to: number }): string =>
  from === to ? `line ${from}` : `lines ${from}–${to}`;

export function CommentBox({ file }: { file: ApiFile }): ReactNode {
  const review = useReview();
  const { writing } = review;
  const [text, setText] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  // The diff library attaches this element only after React has rendered it.
  useEffect(() => {
    const frame = requestAnimationFrame(() => field.current?.focus({ preventScroll: true }));
    return () => cancelAnimationFrame(frame);
  }, []);
  if (writing === null) return null;
  const leave = (): void => {
    review.write(null);
    review.diff.current?.focus();
  };
  const save = (): void => {
    if (text.trim() === '') return;
    const loaded = review.texts.get(file.n);
    const lines = loaded?.state === 'ready' && loaded.diff !== null ? linesOfText(loaded.diff) : [];
    review.comments.put({
      id: crypto.randomUUID(),
      path: file.path,
      print: fingerprintOf(file),
      side: writing.side,
      from: writing.from,
      to: writing.to,
      snippet: snippetOf(lines, writing.side, writing.from, writing.to),
      text: text.trim(),
      sent: false,
    });
    leave();
  };
  return (
    <div className={`${CARD} border-accent`}>
      <textarea
        ref={field}
        aria-label={`Comment on ${linesIn(writing)} of ${cleanLine(file.path)}`}
        placeholder="What should the agent do here?"
        rows={3}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            save();
          } else if (event.key === 'Escape') {
            event.preventDefault();
            leave();
          }
        }}
        className={`${FIELD} py-2`}
      />
      <div className="mt-2 flex items-center gap-2">
        <span className="grow text-sm text-muted">
          On {linesIn(writing)}. Kept as a draft until you send all comments.
        </span>
        <Button size="small" onClick={leave}>
          Cancel
        </Button>
        <Button size="small" look="primary" disabled={text.trim() === ''} onClick={save}>
          Add comment
        </Button>
      </div>
    </div>
  );
}

export function CommentCard({ comment }: { comment: Comment }): ReactNode {
  const review = useReview();
  return (
    <div className={`${CARD} flex gap-2 ${comment.sent ? 'border-line' : 'border-accent'}`}>
      <MessageSquare size={16} aria-hidden className="mt-0.5 shrink-0 text-muted" />
      <div className="min-w-0 grow">
        <p className="text-xs text-muted">
          {comment.sent ? 'Sent' : 'Draft'}, {linesIn(comment)}
        </p>
        <p className="wrap-anywhere whitespace-pre-wrap">{clean(comment.text)}</p>
      </div>
      <Button size="small" look="quiet" onClick={() => review.comments.drop(comment.id)}>
        {comment.sent ? 'Hide' : 'Delete'}
      </Button>
    </div>
  );
}
