// web/src/ui/confirm.tsx: a question before what a single key would do.
// Invariant: no button has the focus, so that neither Space nor a key that was meant for something else confirms. Only Enter does, and only
// outside a sentence: after no other key in the question, and not as fast after the keys before as they come in a word that ends with the
// question's key ("them").
import { Dialog as Base } from '@base-ui/react/dialog';
import { useCallback, useEffect, useEffectEvent, useLayoutEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { Keys } from '../actions/keys.tsx';
import { Button } from './button.tsx';

/** Two keys of one word come faster than this. */
const IN_A_WORD_MS = 300;

interface Question {
  readonly title: string;
  /** Of the button that confirms. */
  readonly label: string;
  readonly about?: ReactNode;
  readonly do: () => void;
}

/** The dialog, if a question was asked, and the function that asks one. */
export function useConfirm(): readonly [ReactNode, (question: Question) => void] {
  const [asked, setAsked] = useState<{ question: Question; inWord: boolean } | null>(null);
  const lettersAtMs = useRef<readonly number[]>([]);
  useLayoutEffect(() => {
    const note = ({ key }: KeyboardEvent): void => {
      if (key.length === 1) lettersAtMs.current = [...lettersAtMs.current.slice(-1), performance.now()];
    };
    document.addEventListener('keydown', note, { capture: true });
    return () => document.removeEventListener('keydown', note, { capture: true });
  }, []);
  const ask = useCallback((question: Question): void => {
    const [before = -Infinity, last = -Infinity] = lettersAtMs.current;
    const now = performance.now();
    setAsked({ question, inWord: now - last < IN_A_WORD_MS && last - before < IN_A_WORD_MS });
  }, []);
  const dialog =
    asked === null ? null : (
      <Confirm {...asked} onClose={() => setAsked(null)}>
        {asked.question.about}
      </Confirm>
    );
  return [dialog, ask];
}

function Confirm({
  question,
  inWord,
  onClose,
  children,
}: {
  question: Question;
  inWord: boolean;
  onClose: () => void;
  children?: ReactNode;
}): ReactNode {
  const popup = useRef<HTMLDivElement>(null);
  const [typed, setTyped] = useState(inWord);
  const [ready, setReady] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setReady(true), IN_A_WORD_MS);
    return () => clearTimeout(timer);
  }, []);
  const confirm = (): void => {
    onClose();
    question.do();
  };
  const onKey = useEffectEvent((event: KeyboardEvent): void => {
    if (event.target !== popup.current && popup.current?.contains(event.target as Node) === true) return;
    if (event.key === 'Enter') event.preventDefault();
    if (event.key === 'Enter' && !event.repeat && ready && !typed) confirm();
    else if (event.key.length === 1) setTyped(true);
  });
  // From the first moment, for the whole page: on a busy machine the dialog has the focus only a few keys later.
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent): void => onKey(event);
    document.addEventListener('keydown', listen, { capture: true });
    return () => document.removeEventListener('keydown', listen, { capture: true });
  }, []);
  return (
    <Base.Root open onOpenChange={(next) => (next ? undefined : onClose())}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-40 bg-[rgb(8_10_14/45%)]" />
        <Base.Popup
          ref={popup}
          initialFocus={popup}
          tabIndex={-1}
          className="fixed top-[20vh] left-1/2 z-50 flex max-h-[70vh] w-[calc(100vw-2rem)] max-w-lg -translate-x-1/2 flex-col gap-4 rounded-lg border border-line bg-bg p-5 shadow-pop outline-none"
        >
          <Base.Title className="text-lg font-semibold wrap-anywhere">{question.title}</Base.Title>
          {children === undefined ? null : <div className="min-h-0 overflow-y-auto">{children}</div>}
          <p role="status" className="text-sm text-muted empty:hidden">
            {typed ? 'You are typing. Click the button, or close this with Esc.' : null}
          </p>
          <div className="flex justify-end gap-2">
            <Base.Close render={<Button />}>Cancel</Base.Close>
            <Button look="primary" onClick={confirm}>
              {question.label}{' '}
              {typed ? null : (
                <span className={ready ? '' : 'invisible'}>
                  <Keys keys="enter" />
                </span>
              )}
            </Button>
          </div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
