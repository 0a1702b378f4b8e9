// web/src/review/notes.tsx: content between the lines of a diff: facts about the file, hunk checkboxes and comments.
import { TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiFile } from '../../../src/protocol/api/review.ts';
import type { DiffNote } from '../diff/diff-view.tsx';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { Checkbox } from '../ui/fields.tsx';
import { DiffStat } from '../ui/figures.tsx';
import { Failure } from '../ui/states.tsx';
import { canRun, includesHunk } from './choice.ts';
import { CommentBox, CommentCard } from './comment-box.tsx';
import { isOutdated } from './comments.ts';
import { idOf, useReview } from './review-state.ts';
import type { Review } from './review-state.ts';
import { LANE_NAMES } from './tree.ts';
import { factsOf } from './file-facts.ts';

/** The notes of a file and their positions. */
export function notesOf(review: Review, file: ApiFile): DiffNote[] {
  const text = review.texts.get(file.n);
  if (text === undefined) return [];
  const top = (key: string): DiffNote => ({ key, side: file.mode.after === null ? 'old' : 'new', line: 0 });
  if (text.state === 'failed') return [top('failed')];
  const notes: DiffNote[] = [];
  if (sentencesOf(review, file).length > 0 || file.reasons.length > 0) notes.push(top('facts'));
  const hunks = text.scope === 'whole' ? (text.diff?.hunks ?? []) : [];
  if (text.scope === 'since') notes.push(top('since'));
  if (hunks.length > 1)
    for (const { n, above } of hunks)
      notes.push(above < 1 ? top(`hunk:${n}`) : { key: `hunk:${n}`, side: 'new', line: above });
  for (const comment of review.comments.all)
    if (comment.path === file.path && !isOutdated(comment, [file]))
      notes.push({ key: `comment:${comment.id}`, side: comment.side, line: comment.to });
  if (review.writing?.file === idOf(file))
    notes.push({ key: 'write', side: review.writing.side, line: review.writing.to });
  return notes;
}

function sentencesOf(review: Review, file: ApiFile): string[] {
  const text = review.texts.get(file.n);
  if (text?.state !== 'ready') return [];
  const facts = [...factsOf(file), ...(text.diff?.notes ?? [])].filter((fact) => !file.reasons.includes(fact));
  if (text.why !== null && file.added !== null) facts.push(text.why);
  if (facts.length === 0 && file.reasons.length === 0 && text.diff === null)
    facts.push(
      text.scope === 'no-space' && file.oid.before !== file.oid.after
        ? 'Only whitespace changed.'
        : 'The content is unchanged.',
    );
  return facts;
}

export function Note({ file, of }: { file: ApiFile; of: string }): ReactNode {
  const review = useReview();
  const [kind = '', id = ''] = of.split(':');
  switch (kind) {
    case 'facts':
      return <Facts file={file} />;
    case 'failed': {
      const text = review.texts.get(file.n);
      return text?.state === 'failed' ? (
        <Failure error={text.error} title="Cannot read this file" retry={() => review.texts.retry(file.n)} />
      ) : null;
    }
    case 'since':
      return <Since file={file} />;
    case 'hunk':
      return <HunkBar file={file} hunk={Number(id)} />;
    case 'comment': {
      const comment = review.comments.all.find((one) => one.id === id);
      return comment === undefined ? null : <CommentCard comment={comment} />;
    }
    default:
      return <CommentBox file={file} />;
  }
}

function Facts({ file }: { file: ApiFile }): ReactNode {
  const review = useReview();
  const sentences = sentencesOf(review, file);
  const risky = canRun(file);
  return (
    <div
      className={`border-b border-line px-4 py-2 font-sans text-base text-text ${risky ? 'bg-warn-bg' : 'bg-panel'}`}
    >
      {risky ? (
        <div className="flex gap-2">
          <TriangleAlert size={16} aria-hidden className="mt-0.5 shrink-0 text-warn" />
          <div>
            <p className="font-medium text-warn">{LANE_NAMES[file.lane]}</p>
            {file.reasons.map((reason) => (
              <p key={reason} className="wrap-anywhere">
                {cleanLine(reason)}
              </p>
            ))}
          </div>
        </div>
      ) : (
        file.reasons.map((reason) => (
          <p key={reason} className="wrap-anywhere">
            {cleanLine(reason)}
          </p>
        ))
      )}
      {sentences.map((sentence) => (
        <p key={sentence} className={`wrap-anywhere text-muted ${risky ? 'pl-6' : ''}`}>
          {sentence}
        </p>
      ))}
    </div>
  );
}

function Since({ file }: { file: ApiFile }): ReactNode {
  const { texts } = useReview();
  return (
    <div className="flex flex-wrap items-center gap-x-3 border-b border-line bg-info-bg px-4 py-1.5 font-sans text-base text-text">
      <span className="grow">Only changes since you last viewed it. A merge includes the full diff.</span>
      <Button size="small" onClick={() => texts.setSince(file.n, null)}>
        Show full diff
      </Button>
    </div>
  );
}

function HunkBar({ file, hunk: n }: { file: ApiFile; hunk: number }): ReactNode {
  const review = useReview();
  const text = review.texts.get(file.n);
  const hunks = text?.state === 'ready' ? (text.diff?.hunks ?? []) : [];
  const hunk = hunks[n];
  if (hunk === undefined) return null;
  const taken = includesHunk(review.choice, file.n, n);
  const name = `hunk ${n + 1} of ${hunks.length}`;
  return (
    <div className="flex h-7 items-center gap-1.5 border-y border-line bg-panel pl-2 font-sans text-sm text-muted">
      <Checkbox
        label={`Include ${name} of ${cleanLine(file.path)}`}
        checked={taken}
        onChange={() => review.toggleHunk(file, n)}
      />
      <span className={taken ? 'text-text' : ''}>{taken ? `Included: ${name}` : `Excluded: ${name}`}</span>
      <DiffStat added={hunk.added} removed={hunk.removed} />
      <span className="unseen">{plural(hunk.added + hunk.removed, 'line')}</span>
    </div>
  );
}
