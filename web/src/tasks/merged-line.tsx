// web/src/tasks/merged-line.tsx: what of a task is merged, with the button that takes it back.
import { GitMerge, Undo2 } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiTask } from '../../../src/protocol/api/api.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';

/** Nothing for a task without a merge. */
export function MergedLine({
  task: { merged },
  busy = false,
  onUndo,
}: {
  task: Pick<ApiTask, 'merged'>;
  busy?: boolean;
  onUndo: () => void;
}): ReactNode {
  if (merged === null) return null;
  return (
    <p className="flex flex-wrap items-center gap-x-2 gap-y-1 text-sm">
      <span className="flex items-center gap-1.5 text-ok">
        <GitMerge size={14} aria-hidden className="shrink-0" />
        <span className="wrap-anywhere">{mergedWords(merged)}</span>
      </span>
      <Button size="small" disabled={busy} onClick={onUndo}>
        <Undo2 size={14} aria-hidden /> Undo merge
      </Button>
    </p>
  );
}

/** For example "33 of 48 files merged into main as 72e1b80". */
export function mergedWords({ files, of, branch, commit }: NonNullable<ApiTask['merged']>): string {
  const which =
    files === null || of === null ? 'Merged' : `${files === of ? '' : `${files} of `}${plural(of, 'file')} merged`;
  return `${which} into ${cleanLine(branch, 60)} as ${cleanLine(commit.slice(0, 7))}`;
}
