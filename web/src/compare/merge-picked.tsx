// web/src/compare/merge-picked.tsx: merges the picked files of both attempts as one commit, after a trial merge and optional checks.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { CircleCheck, CircleX, GitMerge, LoaderCircle, Undo2 } from 'lucide-react';
import type { ReactNode } from 'react';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';
import { CHECKS_FIRST, ChecksBar } from '../review/checks-bar.tsx';
import { useTrial } from '../review/trial.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { Failure } from '../ui/states.tsx';
import { showToast } from '../ui/toasts.tsx';
import type { Side } from './attempt-table.tsx';
import { selectionFrom } from './pick.ts';
import type { FilePair, Picks } from './pick.ts';

export function MergePicked({
  a,
  b,
  files,
  picks,
}: {
  a: Side;
  b: Side;
  files: readonly FilePair[];
  picks: Picks;
}): ReactNode {
  const client = useQueryClient();
  const fromA = selectionFrom(a.changes, files, picks, 'a');
  const fromB = selectionFrom(b.changes, files, picks, 'b');
  const into = a.changes.into.branch;
  // The merge belongs to the first attempt with a picked file; files of the other attempt go into the same commit.
  const { task } = fromA.files.length > 0 ? a : b;
  const besides = fromA.files.length > 0 && fromB.files.length > 0 ? { ...fromB, task: b.task.id } : null;
  const request = { ...(task === a.task ? fromA : fromB), besides, into };
  const trial = useTrial(task.id, request);
  const tried = trial.isPlaceholderData ? undefined : trial.data;
  // Keep the previous answer during the next trial merge, so that the button does not flicker.
  const checksFirst = trial.data?.needsChecks === true;
  const settled = async (): Promise<void> => {
    for (const one of [a.task, b.task]) await client.invalidateQueries({ queryKey: keys.task(one.id) });
    await client.invalidateQueries({ queryKey: keys.tasks });
    await client.invalidateQueries({ queryKey: keys.trial(task.id) });
  };
  const merge = useMutation({
    mutationFn: async () => {
      await api.merge(task.id, request);
      return task.id;
    },
    onSettled: settled,
  });
  const undo = useMutation({
    mutationFn: async (merged: string) => api.undo(merged),
    onSuccess: () => {
      merge.reset();
      showToast('Merge undone');
    },
    onSettled: settled,
  });
  const problem = trial.error?.message ?? tried?.problem ?? null;
  const count = fromA.files.length + fromB.files.length;
  const { data: done } = merge;
  return (
    <section
      aria-label="Merge"
      className="flex shrink-0 flex-wrap items-center gap-x-4 gap-y-2 border-t border-line bg-panel px-4 py-3"
    >
      <span className="tabular font-medium">
        {plural(fromA.files.length, 'file')} from A, {fromB.files.length} from B
      </span>
      <span className="text-sm text-muted">→ {cleanLine(into ?? 'no branch')}</span>
      <span role="status" className="flex min-w-0 grow items-center gap-1.5 text-sm">
        {count === 0 ? (
          <span className="text-muted">Pick files to see whether they merge.</span>
        ) : done !== undefined ? (
          <span className="flex items-center gap-1.5 font-medium text-ok">
            <CircleCheck size={14} aria-hidden /> Merged
          </span>
        ) : problem === null && tried === undefined ? (
          <span className="text-muted">Trying the merge…</span>
        ) : problem === null ? (
          <span className="flex items-center gap-1.5 text-ok">
            <CircleCheck size={14} aria-hidden /> Merges cleanly.
          </span>
        ) : (
          <span className="flex min-w-0 items-center gap-1.5 text-bad">
            <CircleX size={14} aria-hidden className="shrink-0" />
            <span className="wrap-anywhere">{cleanLine(problem)}</span>
          </span>
        )}
      </span>
      {count > 0 && done === undefined ? (
        <ChecksBar task={task} selection={request} trial={tried} first={checksFirst} />
      ) : null}
      {done === undefined ? (
        <Button
          look={checksFirst ? 'plain' : 'primary'}
          className="ml-auto"
          aria-describedby={checksFirst ? CHECKS_FIRST : undefined}
          disabled={
            count === 0 || tried === undefined || problem !== null || checksFirst || merge.isPending || into === null
          }
          onClick={() => merge.mutate()}
        >
          {merge.isPending ? (
            <LoaderCircle size={16} aria-hidden className="animate-spin" />
          ) : (
            <GitMerge size={16} aria-hidden />
          )}
          Merge {plural(count, 'file')}
        </Button>
      ) : (
        <Button disabled={undo.isPending} onClick={() => undo.mutate(done)}>
          <Undo2 size={16} aria-hidden /> Undo merge
        </Button>
      )}
      {merge.isError ? <Failure tight error={merge.error} title="Nothing was merged" /> : null}
      {undo.isError ? <Failure tight error={undo.error} title="Undo failed" /> : null}
    </section>
  );
}
