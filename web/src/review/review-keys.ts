// web/src/review/review-keys.ts: keyboard shortcuts of the review page.
import { useAction } from '../actions/registry.ts';
import type { ApiFile } from '../../../src/protocol/api/review.ts';
import type { Layout } from '../diff/diff-view.tsx';
import type { DiffHunk, DiffLine } from '../diff/source.ts';
import { canRun, inclusionOf } from './choice.ts';
import { idOf, linesOfText } from './review-state.ts';
import type { Review } from './review-state.ts';

export function useReviewKeys(review: Review, layout: Layout, setLayout: (layout: Layout) => void): void {
  const { files, current, cursor } = review;
  const position = current === null ? -1 : files.indexOf(current);

  const linesIn = (file: ApiFile): readonly DiffLine[] => {
    const text = review.texts.get(file.n);
    return review.isOpen(file) && text?.state === 'ready' && text.diff !== null ? linesOfText(text.diff) : [];
  };
  const hunksIn = (file: ApiFile): readonly DiffHunk[] => {
    const text = review.texts.get(file.n);
    return review.isOpen(file) && text?.state === 'ready' ? (text.diff?.hunks ?? []) : [];
  };
  /** Going to such a file loads it. */
  const isUnread = (file: ApiFile): boolean => review.isOpen(file) && review.texts.get(file.n) === undefined;
  const show = (file: ApiFile, { side, line }: Pick<DiffLine, 'side' | 'line'>): void => {
    review.setCursor({ file: idOf(file), side, from: line, to: line });
    review.diff.current?.toLine(idOf(file), side, line);
  };
  const index = (lines: readonly DiffLine[]): number =>
    cursor === null || current === null || cursor.file !== idOf(current)
      ? -1
      : lines.findIndex(
          (one) =>
            one.line === cursor.to && (one.side === cursor.side || (one.kind === 'same' && cursor.side === 'new')),
        );
  const hunkHere = (): number => {
    const lines = current === null ? [] : linesIn(current);
    return lines[index(lines)]?.hunk ?? -1;
  };

  const line = (step: 1 | -1): void => {
    for (let i = Math.max(0, position); i >= 0 && i < files.length; i += step) {
      const file = files[i];
      if (file === undefined) return;
      const lines = linesIn(file);
      const at = i === position ? index(lines) : -1;
      const next = at < 0 ? (step === 1 || i === position ? lines[0] : lines.at(-1)) : lines[at + step];
      if (next !== undefined) return show(file, next);
      if (i !== position && isUnread(file)) return review.goTo(file);
    }
  };
  const hunk = (step: 1 | -1): void => {
    for (let i = Math.max(0, position); i >= 0 && i < files.length; i += step) {
      const file = files[i];
      if (file === undefined) return;
      const hunks = hunksIn(file);
      const at = i === position ? hunkHere() : -1;
      const next = i !== position && step === -1 ? hunks.at(-1) : (hunks[at + step] ?? (at < 0 ? hunks[0] : undefined));
      const isHere = i === position && at >= 0 && next?.n === at;
      if (next !== undefined && !isHere && !(i === position && step === -1 && at <= 0)) return show(file, next.first);
      if (i !== position && isUnread(file)) return review.goTo(file);
    }
  };
  const go = (file: ApiFile | undefined): void => {
    if (file !== undefined) review.goTo(file);
  };

  useAction('line-down', () => line(1));
  useAction('line-up', () => line(-1));
  useAction('hunk-after', () => hunk(1));
  useAction('hunk-before', () => hunk(-1));
  useAction('file-after', () => go(files[position + 1]));
  useAction('file-before', () => go(files[Math.max(0, position - 1)]));
  useAction('next-risky', () => {
    const risky = files.filter(canRun);
    go(
      risky.find((file) => files.indexOf(file) >= position && !review.wasSeen(file)) ??
        risky.find((file) => !review.wasSeen(file)) ??
        risky[0],
    );
  });
  useAction(
    'viewed',
    () => {
      if (current === null) return;
      review.setViewed(current, true);
      const after = [...files.slice(position + 1), ...files.slice(0, position)];
      go(after.find((file) => !review.isViewed(file)));
    },
    current !== null,
  );
  useAction(
    'take-file',
    () => {
      if (current !== null) review.include([current], inclusionOf(review.choice, current.n) !== 'all');
    },
    current !== null,
  );
  useAction(
    'take-hunk',
    () => {
      if (current !== null) review.toggleHunk(current, Math.max(0, hunkHere()));
    },
    current !== null,
  );
  useAction('comment', () => {
    if (cursor !== null) review.write(cursor);
    else line(1);
  });
  useAction('layout', () => setLayout(layout === 'split' ? 'unified' : 'split'));
  useAction(
    'fold',
    () => {
      if (current !== null) review.setOpen(current, !review.isOpen(current));
    },
    current !== null,
  );
}
