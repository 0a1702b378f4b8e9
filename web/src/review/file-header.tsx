// web/src/review/file-header.tsx: the header of each file in the diff: change, risk, and the checkboxes Include and Viewed.
import { ChevronDown, ChevronRight, LoaderCircle, TriangleAlert } from 'lucide-react';
import { useEffect } from 'react';
import type { ReactNode } from 'react';
import type { ApiFile } from '../../../src/protocol/api/review.ts';
import { cleanLine } from '../text/clean.ts';
import { Button, IconButton } from '../ui/button.tsx';
import { Checkbox } from '../ui/fields.tsx';
import { DiffStat } from '../ui/figures.tsx';
import { canRun, inclusionOf } from './choice.ts';
import { useReview } from './review-state.ts';
import { LANE_NAMES } from './tree.ts';
import { KINDS } from './file-facts.ts';

export function FileHeader({ file }: { file: ApiFile }): ReactNode {
  const review = useReview();
  const { texts } = review;
  const open = review.isOpen(file);
  const loading = open && texts.get(file.n) === undefined;
  useEffect(() => {
    if (loading) texts.want(file.n);
  }, [loading, texts, file.n]);
  const taken = inclusionOf(review.choice, file.n);
  const unseen = canRun(file) && !review.wasSeen(file);
  const name = cleanLine(file.path);
  const viewed = review.viewedBefore(file);
  return (
    <div
      data-file={file.n}
      className={`flex h-11 items-center gap-1.5 border-b border-line pr-3 pl-1 font-sans text-base text-text ${review.current === file ? 'bg-raised' : 'bg-panel'}`}
    >
      <IconButton
        size="small"
        label={`${open ? 'Collapse' : 'Expand'} ${name}`}
        aria-expanded={open}
        onClick={() => review.setOpen(file, !open)}
      >
        {open ? <ChevronDown size={16} aria-hidden /> : <ChevronRight size={16} aria-hidden />}
      </IconButton>
      <Checkbox
        label={`Include ${name}`}
        checked={taken === 'all'}
        mixed={taken === 'some'}
        disabled={unseen}
        onChange={() => review.include([file], taken !== 'all')}
      />
      <KindLetter kind={file.kind} />
      <Path path={file.path} />
      {canRun(file) ? (
        <span
          className="flex min-w-0 shrink items-center gap-1 text-sm text-warn"
          title={file.reasons.map((one) => cleanLine(one)).join('\n')}
        >
          <TriangleAlert size={14} aria-hidden className="shrink-0" />
          <span className="truncate">{cleanLine(file.reasons[0] ?? LANE_NAMES[file.lane], 120)}</span>
        </span>
      ) : null}
      <span className="grow" />
      {loading ? <LoaderCircle size={14} aria-label="Loading" className="animate-spin text-muted" /> : null}
      {!open && file.folded !== null ? (
        <span className="shrink-0 text-sm text-muted">{cleanLine(file.folded)}</span>
      ) : null}
      {file.conflict ? <span className="shrink-0 text-sm font-medium text-bad">conflicts</span> : null}
      <span className="text-sm">
        <DiffStat added={file.added} removed={file.removed} />
      </span>
      {viewed !== null && !unseen && texts.sinceOf(file.n) === null ? (
        <Button
          size="small"
          aria-label={`Show changes since you viewed ${name}`}
          onClick={() => {
            review.setOpen(file, true);
            texts.setSince(file.n, viewed);
          }}
        >
          Show new changes
        </Button>
      ) : null}
      {review.isMerged(file) ? <span className="shrink-0 text-sm text-ok">merged</span> : null}
      {unseen ? (
        <Button size="small" onClick={() => review.setOpen(file, true)}>
          Show diff
        </Button>
      ) : (
        <span className="flex shrink-0 items-center text-sm text-muted">
          <Checkbox
            label={`Viewed ${name}`}
            checked={review.isViewed(file)}
            onChange={(viewed) => review.setViewed(file, viewed)}
          />
          <span aria-hidden>Viewed</span>
        </span>
      )}
    </div>
  );
}

export function KindLetter({ kind }: { kind: ApiFile['kind'] }): ReactNode {
  const { letter, word, colour } = KINDS[kind];
  return (
    <span title={word} className={`w-4 shrink-0 text-center font-mono text-sm font-semibold ${colour}`}>
      <span aria-hidden>{letter}</span>
      <span className="unseen">{word}</span>
    </span>
  );
}

/** When space is short, the folders are truncated before the file name. */
export function Path({ path }: { path: string }): ReactNode {
  const at = path.lastIndexOf('/') + 1;
  return (
    <span className="flex min-w-24 font-mono text-sm" title={cleanLine(path)}>
      <span className="truncate text-muted">{cleanLine(path.slice(0, at))}</span>
      <span className="max-w-96 min-w-0 shrink-0 truncate font-medium">{cleanLine(path.slice(at))}</span>
    </span>
  );
}

export function FileLink({ file }: { file: ApiFile }): ReactNode {
  const review = useReview();
  return (
    <button type="button" className="max-w-full truncate font-mono underline" onClick={() => review.goTo(file)}>
      {cleanLine(file.path)}
    </button>
  );
}
