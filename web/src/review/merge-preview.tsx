// web/src/review/merge-preview.tsx: the result of the trial merge, and of the merge itself.
import { CircleCheck, CircleX, LoaderCircle, Undo2 } from 'lucide-react';
import type { ReactNode } from 'react';
import type { Merged } from '../../../src/protocol/api/review.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { Failure } from '../ui/states.tsx';
import { ConflictHelp } from './conflict.tsx';
import { FileLink } from './file-header.tsx';
import { useReview } from './review-state.ts';

export function MergePreview({
  trial,
  trying,
  error,
  count,
}: {
  trial: Merged | undefined;
  trying: boolean;
  error: unknown;
  count: number;
}): ReactNode {
  const review = useReview();
  if (count === 0)
    return (
      <p className="text-sm text-muted">
        {review.files.every((file) => review.isMerged(file))
          ? 'The branch has all of these changes.'
          : 'Select files to see whether they merge.'}
      </p>
    );
  if (error !== null) return <Failure tight error={error} title="The trial merge failed" />;
  if (trial === undefined || trying)
    return (
      <p role="status" className="flex items-center gap-1.5 text-sm text-muted">
        <LoaderCircle size={14} aria-hidden className="animate-spin" /> Trying the merge…
      </p>
    );
  if (trial.problem === null)
    return (
      <p role="status" className="flex items-center gap-1.5 text-sm text-ok">
        <CircleCheck size={14} aria-hidden />
        {trial.to === null
          ? 'Nothing to merge: the branch already has these changes.'
          : `Merges cleanly onto ${trial.from.slice(0, 7)}.`}
      </p>
    );
  const conflicting = review.files.filter(({ path }) => trial.conflicts.includes(path));
  return (
    <div role="status" className="rounded-md border border-bad bg-bad-bg p-2 text-sm">
      <p className="flex gap-1.5 font-medium text-bad">
        <CircleX size={14} aria-hidden className="mt-0.5 shrink-0" />
        {conflicting.length > 0
          ? `${plural(conflicting.length, 'file')} would conflict`
          : cleanLine(trial.problem.split('\n')[0] ?? '')}
      </p>
      {conflicting.length === 0 ? (
        <p className="mt-1 wrap-anywhere">{cleanLine(trial.problem.split('\n').slice(1).join(' '))}</p>
      ) : (
        <>
          <ul className="mt-1">
            {conflicting.slice(0, 8).map((file) => (
              <li key={file.n}>
                <FileLink file={file} />
              </li>
            ))}
          </ul>
          <Button size="small" className="mt-2" onClick={() => review.include(conflicting, false)}>
            Exclude {conflicting.length === 1 ? 'it' : 'them'}
          </Button>
          <ConflictHelp files={conflicting} into={trial.branch} />
        </>
      )}
    </div>
  );
}

export function MergeResult({
  merged,
  undoing,
  failure,
  onUndo,
  onMore,
}: {
  merged: Merged;
  undoing: boolean;
  failure: unknown;
  onUndo: () => void;
  onMore: () => void;
}): ReactNode {
  return (
    <section aria-label="Merge" className="flex shrink-0 flex-col gap-2 border-t border-line bg-ok-bg p-3">
      <p role="status" className="flex items-center gap-1.5 font-medium text-ok">
        <CircleCheck size={16} aria-hidden />
        {merged.to === null
          ? 'Nothing to merge: the branch already had these changes.'
          : `${plural(merged.files, 'file')} merged into ${cleanLine(merged.branch)}`}
      </p>
      {merged.to === null ? null : (
        <p className="font-mono text-sm">
          {merged.from.slice(0, 7)} → {merged.to.slice(0, 7)}
        </p>
      )}
      {merged.left.length === 0 ? null : (
        <p className="text-sm text-muted">
          Not merged, or only in part:{' '}
          {merged.left
            .slice(0, 5)
            .map((path) => cleanLine(path, 80))
            .join(', ')}
          {merged.left.length > 5 ? ` and ${merged.left.length - 5} more` : ''}
        </p>
      )}
      {failure === null ? null : <Failure tight error={failure} title="Undo failed" />}
      <div className="flex gap-2">
        {merged.to === null ? null : (
          <Button disabled={undoing} onClick={onUndo}>
            <Undo2 size={16} aria-hidden /> Undo merge
          </Button>
        )}
        {merged.left.length > 0 ? <Button onClick={onMore}>Merge more</Button> : null}
      </div>
    </section>
  );
}
