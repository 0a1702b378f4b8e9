// web/src/review/address.ts: where an address leads to in a review: a file, and lines in it; and the address of where one is.
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { useAction } from '../actions/registry.ts';
import type { LineRange } from '../diff/diff-view.tsx';
import { say } from '../ui/toasts.tsx';
import { idOf } from './review-state.ts';
import type { Review } from './review-state.ts';

/** `12`, `12-15`; of the old version `old-12`, `old-12-15`. */
export function readLines(text: string | undefined): Omit<LineRange, 'file'> | null {
  const [, old, first = '', last] = /^(old-)?(\d{1,7})(?:-(\d{1,7}))?$/.exec(text ?? '') ?? [];
  const from = Number(first);
  return from < 1 ? null : { side: old === undefined ? 'new' : 'old', from, to: Math.max(from, Number(last ?? from)) };
}

export function writeLines({ side, from, to }: Omit<LineRange, 'file'>): string {
  return `${side === 'old' ? 'old-' : ''}${from}${from === to ? '' : `-${to}`}`;
}

export function useAddress(
  review: Review,
  { file: path, line }: { file?: string | undefined; line?: string | undefined },
): void {
  const { files, texts, diff, cursor } = review;
  const file = files.find((one) => one.path === path);
  const isRead = useSyncExternalStore(texts.subscribe, () => file !== undefined && texts.get(file.n) !== undefined);
  useEffect(() => {
    if (file !== undefined) review.goTo(file);
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- where the address leads to, once
  }, [path]);

  // A line can be gone to once the text is there; afterwards the reader goes where he likes.
  const wanted = `${path ?? ''} ${line ?? ''}`;
  const led = useRef('');
  useEffect(() => {
    const lines = readLines(line);
    if (!isRead || file === undefined || lines === null || led.current === wanted) return undefined;
    led.current = wanted;
    review.setCursor({ file: idOf(file), ...lines });
    const timer = setTimeout(() => diff.current?.toLine(idOf(file), lines.side, lines.from), SETTLED_MS);
    return () => clearTimeout(timer);
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- once for each address
  }, [isRead, wanted]);

  useAction('copy-link', () => {
    const at = cursor === null ? review.current : (review.byId.get(cursor.file) ?? null);
    if (at === null) return;
    const link = new URL(location.href);
    link.search = '';
    link.searchParams.set('file', at.path);
    if (cursor !== null) link.searchParams.set('line', writeLines(cursor));
    void navigator.clipboard.writeText(link.href).then(
      () => say('The link is copied'),
      () => say('The browser did not let it be copied', { about: link.href }),
    );
  });
}

/** The library draws a file after it has got its text. */
const SETTLED_MS = 150;
