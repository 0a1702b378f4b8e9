// web/src/review/screen.tsx: the review screen: files and merge panel on the left, the diff on the right.
import { TriangleAlert } from 'lucide-react';
import { getRouteApi } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import type { ApiChanges } from '../../../src/protocol/api/review.ts';
import { useAction } from '../actions/registry.ts';
import { LAYOUTS } from '../diff/diff-view.tsx';
import type { Layout } from '../diff/diff-view.tsx';
import { usePreference } from '../look/preferences.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { SearchField, Segments } from '../ui/fields.tsx';
import { DiffStat } from '../ui/figures.tsx';
import { Button } from '../ui/button.tsx';
import { useAddress } from './address.ts';
import { canRun } from './choice.ts';
import { CommentTray } from './comment-tray.tsx';
import { DiffPane } from './diff-pane.tsx';
import { FileLink } from './file-header.tsx';
import { FileTree } from './file-tree.tsx';
import { MergeBar } from './merge-bar.tsx';
import { useReviewKeys } from './review-keys.ts';
import { ReviewProvider, useReviewState } from './review-state.ts';
import type { Review } from './review-state.ts';
import { ReviewTitle } from './title.tsx';

const route = getRouteApi('/p/$project/t/$task/changes');
const PANES = [
  { value: 'files', label: 'Files' },
  { value: 'diff', label: 'Diff' },
] as const;

export function ReviewScreen({
  task,
  changes,
  merged,
  newer,
}: {
  task: ApiTaskDetail;
  changes: ApiChanges;
  merged: ReadonlySet<number>;
  newer: ReactNode;
}): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [hideSpace, setHideSpace] = useState(false);
  const state = useReviewState(task.id, changes, merged, hideSpace);
  const [usual, setUsual] = usePreference<Layout>('layout', 'unified');
  const layout = LAYOUTS.find(({ value }) => value === search.layout)?.value ?? usual;
  const setLayout = (next: Layout): void => {
    setUsual(next);
    if (search.layout !== undefined) void navigate({ search: (old) => ({ ...old, layout: next }), replace: true });
  };
  const [pane, setPane] = useState<'files' | 'diff'>('files');
  // A narrow window shows one pane: going to a file switches to the diff.
  const review: Review = {
    ...state,
    goTo(file) {
      setPane('diff');
      state.goTo(file);
    },
  };
  useAddress(review, search);
  useAction('space', () => setHideSpace(!hideSpace));
  const [filter, setFilter] = useState('');
  const field = useRef<HTMLInputElement>(null);
  useAction('filter', () => field.current?.focus());
  useReviewKeys(review, layout, setLayout);
  const viewed = review.files.filter((file) => review.isViewed(file)).length;
  return (
    <ReviewProvider value={review}>
      <div className="flex h-full min-h-0 flex-col">
        <ReviewTitle task={task}>
          <CommentTray />
        </ReviewTitle>
        {newer}
        <div className="border-b border-line p-2 lg:hidden">
          <Segments label="View" value={pane} choices={PANES} onChange={setPane} />
        </div>
        <div className="grid min-h-0 grow grid-rows-[minmax(0,1fr)] lg:grid-cols-[21rem_minmax(0,1fr)]">
          <div
            className={`${pane === 'files' ? 'flex' : 'hidden'} min-h-0 flex-col overflow-y-auto border-line lg:flex lg:border-r`}
          >
            <Warning review={review} />
            <Refused changes={changes} />
            <div className="flex shrink-0 flex-col gap-2 p-3">
              <p className="flex items-baseline gap-3 text-sm">
                <span className="tabular grow text-muted">
                  {viewed} of {plural(review.files.length, 'file')} viewed
                </span>
                <DiffStat added={changes.added} removed={changes.removed} />
              </p>
              <SearchField
                label="Filter files"
                fieldRef={field}
                value={filter}
                onChange={setFilter}
                className="w-full"
              />
            </div>
            <FileTree filter={filter} />
            <MergeBar task={task} />
          </div>
          <div className={`${pane === 'diff' ? 'flex' : 'hidden'} min-h-0 min-w-0 flex-col lg:flex`}>
            <div className="flex h-10 shrink-0 items-center gap-3 border-b border-line px-3">
              <Segments label="Layout" value={layout} choices={LAYOUTS} onChange={setLayout} />
              <Button
                size="small"
                look={hideSpace ? 'plain' : 'quiet'}
                aria-pressed={hideSpace}
                title="Does not change what is merged (w)"
                onClick={() => setHideSpace(!hideSpace)}
              >
                {hideSpace ? 'Whitespace hidden' : 'Hide whitespace'}
              </Button>
              <span className="hidden truncate text-sm text-muted sm:block">
                against {cleanLine(changes.into.branch ?? 'your files')}
                {changes.base === null ? '' : ` ${changes.base.slice(0, 7)}`}
              </span>
            </div>
            <DiffPane layout={layout} />
          </div>
        </div>
      </div>
    </ReviewProvider>
  );
}

function Warning({ review }: { review: Review }): ReactNode {
  const risky = review.files.filter(canRun);
  if (risky.length === 0) return null;
  const host = risky.filter(({ lane }) => lane === 'host').length;
  const where =
    host === risky.length ? 'on your machine' : host === 0 ? 'in CI or with credentials' : 'on your machine or in CI';
  return (
    <div
      className="shrink-0 [@media(min-height:40rem)]:max-h-[30%] overflow-y-auto border-b border-line bg-warn-bg p-3"
      tabIndex={0}
      role="region"
      aria-label="Files that can run code"
    >
      <p className="flex gap-2 font-medium text-warn">
        <TriangleAlert size={16} aria-hidden className="mt-0.5 shrink-0" />
        {plural(risky.length, 'file')} can run code {where}. Review {risky.length === 1 ? 'it' : 'them'} first.
      </p>
      <ul className="mt-1 flex flex-col gap-1 pl-6 text-sm">
        {risky.slice(0, 12).map((file) => (
          <li key={file.n}>
            <FileLink file={file} />
            <span className="block wrap-anywhere">{cleanLine(file.reasons[0] ?? '', 160)}</span>
          </li>
        ))}
        {risky.length > 12 ? <li>and {risky.length - 12} more</li> : null}
      </ul>
    </div>
  );
}

function Refused({ changes }: { changes: ApiChanges }): ReactNode {
  if (changes.refused.length === 0) return null;
  return (
    <div className="shrink-0 border-b border-line bg-panel p-3 text-sm">
      <p className="font-medium">{plural(changes.refused.length, 'path')} cannot be merged</p>
      <ul className="mt-1 max-h-24 overflow-y-auto">
        {changes.refused.slice(0, 20).map(({ path, reason }) => (
          <li key={path} className="wrap-anywhere">
            <span className="font-mono">{cleanLine(path)}</span>: {cleanLine(reason)}
          </li>
        ))}
      </ul>
    </div>
  );
}
