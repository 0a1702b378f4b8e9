// web/src/compare/take-bar.tsx: takes the picked files: those of A, then those of B, each as one commit, tried before.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { CircleCheck, CircleX, GitMerge, LoaderCircle, Undo2 } from 'lucide-react';
import type { ReactNode } from 'react';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';
import { useTrial } from '../review/trial.ts';
import { cleanLine } from '../text/clean.ts';
import { plural } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { Failure } from '../ui/states.tsx';
import { say } from '../ui/toasts.tsx';
import type { Side } from './attempt-table.tsx';
import { wishOf } from './pick.ts';
import type { Both, Picks } from './pick.ts';

export function TakeBar({ a, b, files, picks }: { a: Side; b: Side; files: readonly Both[]; picks: Picks }): ReactNode {
  const client = useQueryClient();
  const fromA = wishOf(a.changes, files, picks, 'a');
  const fromB = wishOf(b.changes, files, picks, 'b');
  const into = a.changes.into.branch;
  const trials = [
    { letter: 'A', trial: useTrial(a.task.id, { ...fromA, into }), count: fromA.files.length },
    { letter: 'B', trial: useTrial(b.task.id, { ...fromB, into }), count: fromB.files.length },
  ].filter(({ count }) => count > 0);
  const settled = async (): Promise<void> => {
    for (const { task } of [a, b]) await client.invalidateQueries({ queryKey: keys.task(task.id) });
    await client.invalidateQueries({ queryKey: keys.tasks });
  };
  const merge = useMutation({
    mutationFn: async () => {
      const done: string[] = [];
      if (fromA.files.length > 0 && (await api.merge(a.task.id, { ...fromA, into })).to !== null) done.push(a.task.id);
      try {
        if (fromB.files.length > 0 && (await api.merge(b.task.id, { ...fromB, into })).to !== null)
          done.push(b.task.id);
      } catch (error) {
        // All or nothing: half of a selection is what nobody chose.
        for (const task of done) await api.undo(task);
        throw error;
      }
      return done;
    },
    onSettled: settled,
  });
  const undo = useMutation({
    mutationFn: async (tasks: readonly string[]) => {
      for (const task of tasks.toReversed()) await api.undo(task);
    },
    onSuccess: () => {
      merge.reset();
      say('Undone');
    },
    onSettled: settled,
  });
  const trying = trials.some(({ trial }) => trial.isFetching);
  const problem = trials.find(({ trial }) => trial.data?.problem != null || trial.isError);
  const count = fromA.files.length + fromB.files.length;
  const { data: done } = merge;
  return (
    <section
      aria-label="Take"
      className="flex shrink-0 flex-wrap items-center gap-x-4 gap-y-2 border-t border-line bg-panel px-4 py-3"
    >
      <span className="tabular font-medium">
        {plural(fromA.files.length, 'file')} from A, {fromB.files.length} from B
      </span>
      <span className="text-sm text-muted">→ {cleanLine(into ?? 'no branch')}</span>
      <span role="status" className="flex min-w-0 grow items-center gap-1.5 text-sm">
        {count === 0 ? (
          <span className="text-muted">Pick files, and what would happen is shown here.</span>
        ) : done !== undefined ? (
          <span className="flex items-center gap-1.5 font-medium text-ok">
            <CircleCheck size={14} aria-hidden /> Merged
          </span>
        ) : trying ? (
          <span className="text-muted">Trying the merge…</span>
        ) : problem === undefined ? (
          <span className="flex items-center gap-1.5 text-ok">
            <CircleCheck size={14} aria-hidden /> Merges cleanly.
          </span>
        ) : (
          <span className="flex min-w-0 items-center gap-1.5 text-bad">
            <CircleX size={14} aria-hidden className="shrink-0" />
            <span className="wrap-anywhere">
              {problem.letter}: {cleanLine(problem.trial.data?.problem ?? problem.trial.error?.message ?? '')}
            </span>
          </span>
        )}
      </span>
      {done === undefined ? (
        <Button
          look="primary"
          disabled={count === 0 || problem !== undefined || trying || merge.isPending || into === null}
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
          <Undo2 size={16} aria-hidden /> Undo
        </Button>
      )}
      {merge.isError ? <Failure error={merge.error} title="Nothing was merged" /> : null}
      {undo.isError ? <Failure error={undo.error} title="It was not undone" /> : null}
    </section>
  );
}
