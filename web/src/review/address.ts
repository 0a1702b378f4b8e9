// web/src/review/address.ts: links to a file and lines in a review: opens them from the URL and copies them.
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { useAction } from '../actions/registry.ts';
import type { LineRange } from '../diff/diff-view.tsx';
import { showToast } from '../ui/toasts.tsx';
import { idOf } from './review-state.ts';
import type { Review } from './review-state.ts';

/** `12` or `12-15`; for the old version `old-12` or `old-12-15`. */
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
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- only when the URL changes
  }, [path]);

  // Scroll to the line once its text is loaded, and only once per URL.
  const wanted = `${path ?? ''} ${line ?? ''}`;
  const led = useRef('');
  useEffect(() => {
    const lines = readLines(line);
    if (!isRead || file === undefined || lines === null || led.current === wanted) return undefined;
    led.current = wanted;
    review.setCursor({ file: idOf(file), ...lines });
    const timer = setTimeout(() => diff.current?.toLine(idOf(file), lines.side, lines.from), SETTLED_MS);
    return () => clearTimeout(timer);
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- once per URL
  }, [isRead, wanted]);

  useAction('copy-link', () => {
    const at = cursor === null ? review.current : (review.byId.get(cursor.file) ?? null);
    if (at === null) return;
    const link = new URL(location.href);
    link.search = '';
    link.searchParams.set('file', at.path);
    if (cursor !== null) link.searchParams.set('line', writeLines(cursor));
    void navigator.clipboard.writeText(link.href).then(
      () => showToast('Link copied'),
      () => showToast('The browser blocked copying', { about: link.href }),
    );
  });
}

/** The diff library needs this long to draw a file after its text arrives. */
const SETTLED_MS = 150;
