// web/src/review/diff-pane.tsx: the diff and its search bar. A separate component, so that only it redraws while texts load.
import { useMemo, useState, useSyncExternalStore } from 'react';
import type { ReactNode } from 'react';
import { DiffView } from '../diff/diff-view.tsx';
import type { DiffFile, Layout } from '../diff/diff-view.tsx';
import { FileHeader } from './file-header.tsx';
import { FindBar } from './find-bar.tsx';
import { Note, notesOf } from './notes.tsx';
import { idOf, useReview } from './review-state.ts';
import type { Review } from './review-state.ts';

export function DiffPane({ layout }: { layout: Layout }): ReactNode {
  const review = useReview();
  const { diff, cursor, setCursor } = review;
  const version = useSyncExternalStore(review.texts.subscribe, review.texts.version);
  const files = useDiffFiles(review, version);
  return (
    <>
      <FindBar />
      <div className="min-h-0 grow">
        <DiffView
          ref={diff}
          label="Changes"
          files={files}
          layout={layout}
          selected={cursor}
          onSelect={setCursor}
          onGutter={(range) => {
            review.setCursor(range);
            review.write(range);
          }}
          onScroll={() => {
            const top = review.byId.get(review.diff.current?.topFile() ?? '');
            if (top !== undefined && top !== review.current && review.cursor === null) review.scrolledTo(top);
          }}
          renderHeader={(id) => {
            const file = review.byId.get(id);
            return file === undefined ? null : <FileHeader file={file} />;
          }}
          renderNote={(id, key) => {
            const file = review.byId.get(id);
            return file === undefined ? null : <Note file={file} of={key} />;
          }}
        />
      </div>
    </>
  );
}

/** The files for the diff view. A file's version increases when it must be redrawn. */
function useDiffFiles(review: Review, textsVersion: number): readonly DiffFile[] {
  const [before] = useState(() => new Map<number, { sign: string; file: DiffFile }>());
  const { files, texts, comments, writing, hideSpace } = review;
  const open = files.map((file) => (review.isOpen(file) ? 1 : 0)).join('');
  return useMemo(
    () =>
      files.map((file, i): DiffFile => {
        const text = texts.get(file.n);
        const notes = notesOf(review, file);
        const folded = open[i] === '0' || text === undefined;
        const sign = `${folded} ${text?.state ?? ''} ${text?.state === 'ready' ? text.scope : ''} ${hideSpace} ${notes.map(({ key, side, line }) => `${key}@${side}${line}`).join(' ')}`;
        const old = before.get(file.n);
        if (old?.sign === sign) return old.file;
        const made = {
          id: idOf(file),
          version: (old?.file.version ?? 0) + 1,
          text: text?.state === 'ready' ? text.diff : null,
          folded,
          notes,
        };
        before.set(file.n, { sign, file: made });
        return made;
      }),
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- only these parts of the review affect the result
    [files, texts, textsVersion, comments, writing, open],
  );
}
