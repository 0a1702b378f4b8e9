// web/src/review/find-bar.tsx: searches all lines of the diff. The browser's own search would miss lines that are not rendered;
// pressing Ctrl+F again in this field opens it.
import { ChevronDown, ChevronUp, X } from 'lucide-react';
import { useDeferredValue, useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { useAction } from '../actions/registry.ts';
import { IconButton } from '../ui/button.tsx';
import type { Side } from '../diff/source.ts';
import { idOf, linesOfText, useReview } from './review-state.ts';
import type { Review } from './review-state.ts';

interface Match {
  readonly file: string;
  readonly side: Side;
  readonly line: number;
}

const MOST = 5000;

export function FindBar(): ReactNode {
  const review = useReview();
  const [open, setOpen] = useState(false);
  const [inField, setInField] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useAction(
    'find',
    () => {
      setOpen(true);
      review.texts.wantAll();
      field.current?.select();
    },
    !inField,
  );
  if (!open) return null;
  const close = (): void => {
    setOpen(false);
    setInField(false);
    review.diff.current?.focus();
  };
  return <Field onClose={close} onFocus={setInField} fieldRef={field} />;
}

function Field({
  onClose,
  onFocus,
  fieldRef,
}: {
  onClose: () => void;
  onFocus: (focused: boolean) => void;
  fieldRef: React.RefObject<HTMLInputElement | null>;
}): ReactNode {
  const review = useReview();
  const [text, setText] = useState('');
  const wanted = useDeferredValue(text);
  const [at, setAt] = useState(-1);
  const { files, texts } = review;
  const found = findMatches(wanted, files, texts);
  useEffect(() => fieldRef.current?.focus(), [fieldRef]);
  useEffect(() => setAt(-1), [wanted]);

  const show = (index: number): void => {
    const one = found[(index + found.length) % found.length];
    const file = review.byId.get(one?.file ?? '');
    if (one === undefined || file === undefined) return;
    setAt((index + found.length) % found.length);
    if (!review.isOpen(file)) review.setOpen(file, true);
    review.setCursor({ file: one.file, side: one.side, from: one.line, to: one.line });
    requestAnimationFrame(() => review.diff.current?.toLine(one.file, one.side, one.line));
  };
  return (
    <div role="search" className="flex h-10 items-center gap-1 border-b border-line bg-panel px-3">
      <input
        ref={fieldRef}
        type="text"
        aria-label="Find in the diff"
        placeholder="Find in the diff"
        spellCheck={false}
        value={text}
        onFocus={() => onFocus(true)}
        onBlur={() => onFocus(false)}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') onClose();
          else if (event.key === 'Enter') show(event.shiftKey ? at - 1 : at + 1);
          else return;
          event.preventDefault();
        }}
        className="h-7 w-64 min-w-0 rounded-md border border-line-strong bg-bg px-2 text-sm"
      />
      <span role="status" className="tabular min-w-20 px-1 text-sm text-muted">
        {wanted === ''
          ? ''
          : found.length === 0
            ? 'No matches'
            : `${Math.max(0, at) + 1} of ${found.length}${found.length === MOST ? '+' : ''}`}
      </span>
      <IconButton size="small" label="Previous match" disabled={found.length === 0} onClick={() => show(at - 1)}>
        <ChevronUp size={16} aria-hidden />
      </IconButton>
      <IconButton size="small" label="Next match" disabled={found.length === 0} onClick={() => show(at + 1)}>
        <ChevronDown size={16} aria-hidden />
      </IconButton>
      <span className="grow" />
      <IconButton size="small" label="Close search" onClick={onClose}>
        <X size={16} aria-hidden />
      </IconButton>
    </div>
  );
}

function findMatches(wanted: string, files: Review['files'], texts: Review['texts']): Match[] {
  const word = wanted.toLowerCase();
  const found: Match[] = [];
  if (word === '') return found;
  for (const file of files) {
    const text = texts.get(file.n);
    if (text?.state !== 'ready' || text.diff === null) continue;
    for (const { side, line, text: content } of linesOfText(text.diff)) {
      if (!content.toLowerCase().includes(word)) continue;
      found.push({ file: idOf(file), side, line });
      if (found.length === MOST) return found;
    }
  }
  return found;
}
