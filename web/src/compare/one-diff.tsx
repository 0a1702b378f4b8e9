// web/src/compare/one-diff.tsx: the diff of one file: an attempt against its base, or one attempt against the other.
import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useRef } from 'react';
import type { ReactNode } from 'react';
import type { ApiFile, ApiFileText } from '../../../src/protocol/api/review.ts';
import { api } from '../api/client.ts';
import { DiffView } from '../diff/diff-view.tsx';
import type { DiffFile, DiffHandle, Layout } from '../diff/diff-view.tsx';
import { compareTexts, readDiff } from '../diff/source.ts';
import type { DiffText } from '../diff/source.ts';
import { KindLetter, Path } from '../review/file-header.tsx';
import { factsOf } from '../review/file-facts.ts';
import { cleanLine } from '../text/clean.ts';
import { DiffStat } from '../ui/figures.tsx';
import { Failure, Skeleton } from '../ui/states.tsx';
import type { Side } from './attempt-table.tsx';
import type { FilePair } from './pick.ts';

export type Against = 'a' | 'b' | 'ab';

export function OneDiff({
  a,
  b,
  both,
  against,
  layout,
  onSeen,
}: {
  a: Side;
  b: Side;
  both: FilePair;
  against: Against;
  layout: Layout;
  onSeen: () => void;
}): ReactNode {
  const one = useText(a, against === 'b' ? null : both.a);
  const other = useText(b, against === 'a' ? null : both.b);
  const error = one.error ?? other.error;
  const loading = one.isLoading || other.isLoading;
  const shown = useMemo(
    () => (loading || error !== null ? null : diffOf(both, against, one.data ?? null, other.data ?? null)),
    [loading, error, both, against, one.data, other.data],
  );
  const seen = useRef(onSeen);
  useEffect(() => {
    seen.current = onSeen;
  });
  useEffect(() => {
    if (shown !== null) seen.current();
  }, [shown]);
  if (error !== null) return <Failure error={error} title="Cannot read this file" />;
  if (shown === null) return <Skeleton label="Loading the diff" rows={3} />;
  return <Shown key={`${against} ${both.path}`} both={both} against={against} layout={layout} {...shown} />;
}

function useText(
  side: Side,
  file: ApiFile | null,
): { data: ApiFileText | undefined; error: unknown; isLoading: boolean } {
  const { data, error, isLoading } = useQuery({
    queryKey: ['file-text', side.task.id, side.changes.id, file?.n ?? null],
    queryFn: async () => api.file(side.task.id, side.changes.id, file?.n ?? 0),
    enabled: file !== null,
    gcTime: 30_000,
  });
  return { data, error, isLoading };
}

function diffOf(
  both: FilePair,
  against: Against,
  one: ApiFileText | null,
  other: ApiFileText | null,
): { diff: DiffText | null; words: string[] } {
  const key = `${against} ${both.path} ${both.a?.oid.after ?? ''} ${both.b?.oid.after ?? ''}`;
  if (against !== 'ab') {
    const [file, text] = against === 'a' ? [both.a, one] : [both.b, other];
    if (file === null || text === null)
      return { diff: null, words: [`${against.toUpperCase()} did not change this file.`] };
    const words = [...file.reasons.map((reason) => cleanLine(reason)), ...factsOf(file)];
    if (text.why !== null) words.push(text.why);
    return { diff: text.patch.includes('\n@@ ') ? readDiff(key, both.path, text) : null, words };
  }
  if (both.same) return { diff: null, words: ['Both attempts have the same content.'] };
  // An attempt that did not change the file still has the base version.
  const textOf = (file: ApiFile | null, text: ApiFileText | null, elsewhere: ApiFileText | null): string | null =>
    file === null ? (elsewhere?.before ?? '') : file.mode.after === null ? '' : (text?.after ?? null);
  const [before, after] = [textOf(both.a, one, other), textOf(both.b, other, one)];
  if (before === null || after === null)
    return { diff: null, words: ['This file is binary or too large to compare here.'] };
  return { diff: compareTexts(key, both.path, before, after), words: [] };
}

function Shown({
  both,
  against,
  layout,
  diff,
  words,
}: {
  both: FilePair;
  against: Against;
  layout: Layout;
  diff: DiffText | null;
  words: readonly string[];
}): ReactNode {
  const handle = useRef<DiffHandle>(null);
  const files = useMemo(
    (): DiffFile[] => [
      {
        id: 'one',
        version: 1,
        text: diff,
        folded: false,
        notes: words.length === 0 ? [] : [{ key: 'words', side: 'new', line: 0 }],
      },
    ],
    [diff, words],
  );
  const file = against === 'b' ? both.b : (both.a ?? both.b);
  return (
    <DiffView
      ref={handle}
      label={`Diff of ${cleanLine(both.path)}`}
      files={files}
      layout={layout}
      selected={null}
      onSelect={() => undefined}
      onGutter={null}
      renderHeader={() => (
        <div className="flex h-11 items-center gap-2 border-b border-line bg-panel px-3 font-sans text-base text-text">
          {against === 'ab' || file === null ? null : <KindLetter kind={file.kind} />}
          <Path path={both.path} />
          <span className="grow" />
          {against === 'ab' ? (
            <span className="text-sm text-muted">− only in A, + only in B</span>
          ) : (
            <DiffStat added={file?.added ?? null} removed={file?.removed ?? null} />
          )}
        </div>
      )}
      renderNote={() => (
        <div className="border-b border-line bg-panel px-4 py-2 font-sans text-base text-text">
          {words.map((word) => (
            <p key={word} className="wrap-anywhere">
              {word}
            </p>
          ))}
        </div>
      )}
    />
  );
}
