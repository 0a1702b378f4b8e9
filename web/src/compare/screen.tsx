// web/src/compare/screen.tsx: the attempt table, the file list and the diff of the selected file.
import { getRouteApi } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiFile } from '../../../src/protocol/api/review.ts';
import { LAYOUTS } from '../diff/diff-view.tsx';
import type { Layout } from '../diff/diff-view.tsx';
import { usePreference } from '../look/preferences.ts';
import { fingerprintOf } from '../review/choice.ts';
import { Button } from '../ui/button.tsx';
import { Segments } from '../ui/fields.tsx';
import { Empty } from '../ui/states.tsx';
import { AttemptTable } from './attempt-table.tsx';
import type { Side } from './attempt-table.tsx';
import { FilePick } from './file-pick.tsx';
import { OneDiff } from './one-diff.tsx';
import type { Against } from './one-diff.tsx';
import { allFrom, pairFiles, withPick } from './pick.ts';
import type { Attempt, Picks } from './pick.ts';
import { MergePicked } from './merge-picked.tsx';

const route = getRouteApi('/p/$project/compare/$a/$b');
const AGAINST = [
  { value: 'a', label: 'Changes in A' },
  { value: 'b', label: 'Changes in B' },
  { value: 'ab', label: 'A vs B' },
] as const;

export function CompareScreen({ a, b }: { a: Side; b: Side }): ReactNode {
  const files = useMemo(() => pairFiles(a.changes, b.changes), [a, b]);
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const against = AGAINST.find(({ value }) => value === search.show)?.value ?? 'ab';
  const show = (to: { file?: string; show?: Against }): void =>
    void navigate({ search: { ...search, ...to }, replace: true });
  const [layout, setLayout] = usePreference<Layout>('layout', 'unified');
  const [seenA, setSeenA] = useSeen(a);
  const [seenB, setSeenB] = useSeen(b);
  const seen = (attempt: Attempt, file: ApiFile): boolean => (attempt === 'a' ? seenA : seenB)(file);
  const [picks, setPicks] = useState<Picks>(() => allFrom(files, 'a', seenA));
  const both = files.find(({ path }) => path === search.file) ?? files[0];
  return (
    <>
      <div className="shrink-0 overflow-x-auto border-b border-line px-4 py-2">
        <AttemptTable a={a} b={b} />
      </div>
      <div className="grid min-h-0 grow grid-cols-[minmax(0,1fr)] lg:grid-cols-[24rem_minmax(0,1fr)] lg:grid-rows-[minmax(0,1fr)]">
        <div className="flex min-h-0 min-w-0 flex-col border-line lg:border-r">
          <div className="flex flex-wrap gap-2 px-4 pt-3">
            <Button size="small" onClick={() => setPicks(allFrom(files, 'a', seenA))}>
              Pick all from A
            </Button>
            <Button size="small" onClick={() => setPicks(allFrom(files, 'b', seenB))}>
              Pick all from B
            </Button>
            <Button size="small" onClick={() => setPicks(new Map())}>
              Clear
            </Button>
          </div>
          <FilePick
            files={files}
            picks={picks}
            shown={both?.path ?? null}
            seen={seen}
            onShow={(file) => show({ file })}
            onPick={(path, attempt) => setPicks(withPick(picks, path, attempt))}
          />
        </div>
        <div className="flex min-h-96 min-w-0 flex-col lg:[@media(min-height:45rem)]:min-h-0">
          <div className="flex min-h-10 shrink-0 flex-wrap items-center gap-3 border-b border-line px-3 py-1">
            <Segments label="Compare" value={against} choices={AGAINST} onChange={(next) => show({ show: next })} />
            <Segments label="Layout" value={layout} choices={LAYOUTS} onChange={setLayout} />
          </div>
          <div className="min-h-0 grow">
            {both === undefined ? (
              <Empty title="Neither attempt changed a file" />
            ) : (
              <OneDiff
                a={a}
                b={b}
                both={both}
                against={against}
                layout={layout}
                onSeen={() => {
                  // Comparing A with B hides lines that both added, so that view does not count as reviewed.
                  if (against === 'a' && both.a !== null) setSeenA(both.a);
                  if (against === 'b' && both.b !== null) setSeenB(both.b);
                }}
              />
            )}
          </div>
        </div>
      </div>
      <MergePicked a={a} b={b} files={files} picks={picks} />
    </>
  );
}

/** Shares its marks with the review page of the task. */
function useSeen({ task }: Side): [(file: ApiFile) => boolean, (file: ApiFile) => void] {
  const [seen, write] = usePreference<Readonly<Record<string, string>>>(`seen.${task.id}`, NONE);
  return [
    (file) => seen[file.path] === fingerprintOf(file),
    (file) => {
      if (seen[file.path] !== fingerprintOf(file)) write({ ...seen, [file.path]: fingerprintOf(file) });
    },
  ];
}

const NONE = {};
