// web/src/ui/confirm.tsx: a question before what a single key would do.
// Invariant: no button has the focus, so that neither Space nor a key that was meant for something else confirms. Only Enter does, and only
// if nothing else was typed since: somebody who types a sentence is not answering.
import { Dialog as Base } from '@base-ui/react/dialog';
import { useEffectEvent, useLayoutEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { Keys } from '../actions/keys.tsx';
import { Button } from './button.tsx';

interface Question {
  readonly title: string;
  /** Of the button that confirms. */
  readonly label: string;
  readonly about?: ReactNode;
  readonly do: () => void;
}

/** The dialog, if a question was asked, and the function that asks one. */
export function useConfirm(): readonly [ReactNode, (question: Question) => void] {
  const [question, ask] = useState<Question | null>(null);
  const dialog =
    question === null ? null : (
      <Confirm title={question.title} label={question.label} onConfirm={question.do} onClose={() => ask(null)}>
        {question.about}
      </Confirm>
    );
  return [dialog, ask];
}

function Confirm({
  title,
  label,
  onConfirm,
  onClose,
  children,
}: {
  title: string;
  label: string;
  onConfirm: () => void;
  onClose: () => void;
  children?: ReactNode;
}): ReactNode {
  const popup = useRef<HTMLDivElement>(null);
  const [typed, setTyped] = useState(false);
  const confirm = (): void => {
    onClose();
    onConfirm();
  };
  const onKey = useEffectEvent((event: KeyboardEvent): void => {
    if (event.target !== popup.current && popup.current?.contains(event.target as Node) === true) return;
    if (event.key === 'Enter') event.preventDefault();
    if (event.key === 'Enter' && !event.repeat && !typed) confirm();
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
          <Base.Title className="text-lg font-semibold wrap-anywhere">{title}</Base.Title>
          {children === undefined ? null : <div className="min-h-0 overflow-y-auto">{children}</div>}
          <p role="status" className="text-sm text-muted empty:hidden">
            {typed ? 'You are typing. Click the button, or close this with Esc.' : null}
          </p>
          <div className="flex justify-end gap-2">
            <Base.Close render={<Button />}>Cancel</Base.Close>
            <Button look="primary" onClick={confirm}>
              {label} {typed ? null : <Keys keys="enter" />}
            </Button>
          </div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}
