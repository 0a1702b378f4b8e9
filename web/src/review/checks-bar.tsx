// web/src/review/checks-bar.tsx: the state of the checks for the current selection, and the button that runs them.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { ListChecks, Square } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import type { Merged, StartChecks } from '../../../src/protocol/api/review.ts';
import type { ApiChecks } from '../../../src/protocol/api/checks.ts';
import { useAction } from '../actions/registry.ts';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { Button } from '../ui/button.tsx';
import { ChecksStatus } from '../ui/checks-status.tsx';
import { Failure } from '../ui/states.tsx';
import { ChecksPane } from './checks-pane.tsx';

/** The id of the sentence that explains why the merge button is disabled. */
export const CHECKS_FIRST = 'checks-first';

/** `trial`: the trial merge of this selection, undefined until known. `first`: checks must pass before a merge. */
export function ChecksBar({
  task,
  selection,
  trial,
  first,
}: {
  task: ApiTaskDetail;
  selection: Omit<StartChecks, 'commands'>;
  trial: Merged | undefined;
  first: boolean;
}): ReactNode {
  const client = useQueryClient();
  const [open, setOpen] = useState(false);
  const { data } = useChecks(task, open);
  const again = async (): Promise<void> => {
    await Promise.all([
      client.invalidateQueries({ queryKey: keys.checks(task.id) }),
      client.invalidateQueries({ queryKey: keys.task(task.id) }),
    ]);
  };
  const start = useMutation({
    mutationFn: async () => api.startChecks(task.id, { ...selection, commands: [...commandsOf(data)] }),
    onSettled: again,
  });
  const stop = useMutation({
    mutationFn: async () => api.stopChecks(task.id),
    onSettled: again,
  });
  const running = task.checks?.state === 'running';
  const nothing = data !== undefined && data.configured.length === 0 && data.suggested.length === 0;
  const possible =
    selection.files.length > 0 && trial?.problem === null && !running && !start.isPending && !nothing && !task.live;
  useAction('checks', () => start.mutate(), possible);
  useTrialRefresh(task);
  const here = task.checks !== null && trial?.tree === task.checks.tree;
  return (
    <div className="flex flex-col gap-1 text-sm">
      <div className="flex flex-wrap items-start gap-2">
        <div
          role="status"
          className={`min-w-0 grow ${here && task.checks?.state === 'failed' ? 'basis-full' : 'basis-32'}`}
        >
          {running || here ? <ChecksStatus checks={task.checks} /> : <span className="text-muted">{notRun(data)}</span>}
          {running && trial !== undefined && !here ? (
            <span className="block text-xs text-muted">These checks are for another selection.</span>
          ) : null}
        </div>
        <div className="flex shrink-0 gap-2">
          {running ? (
            <Button size="small" disabled={stop.isPending} onClick={() => stop.mutate()}>
              <Square size={12} aria-hidden /> Stop
            </Button>
          ) : (
            <Button size="small" look={first ? 'primary' : 'plain'} disabled={!possible} onClick={() => start.mutate()}>
              <ListChecks size={14} aria-hidden /> Run checks
            </Button>
          )}
          <Button size="small" look="quiet" onClick={() => setOpen(true)}>
            Show output
          </Button>
        </div>
      </div>
      {first ? (
        <p id={CHECKS_FIRST} className="text-xs text-muted">
          {data?.configured.length === 0
            ? 'This project requires checks before a merge (merge.check) but defines none. Add them to ags.yaml.'
            : 'Checks must pass before you can merge.'}
        </p>
      ) : null}
      {start.isError ? <Failure tight error={start.error} title="The checks were not started" /> : null}
      <ChecksPane open={open} onClose={() => setOpen(false)} checks={data} tree={trial?.tree ?? null} />
    </div>
  );
}

/** Reads again when the task's check state changes, and every second while the output is open. */
function useChecks(task: ApiTaskDetail, open: boolean): { data: ApiChecks | undefined } {
  const { state, name, endedAtMs } = task.checks ?? { state: 'none', name: null, endedAtMs: null };
  const about = `${state} ${name} ${endedAtMs}`;
  const { data } = useQuery({
    queryKey: [...keys.checks(task.id), about],
    queryFn: async () => api.checks(task.id),
    placeholderData: (before: ApiChecks | undefined) => before,
    refetchInterval: open && state === 'running' ? 1000 : false,
  });
  return { data };
}

/** Repeats the trial merge when checks end, because their result decides whether a merge is allowed. */
function useTrialRefresh({ id, checks }: ApiTaskDetail): void {
  const client = useQueryClient();
  const endedAtMs = checks?.endedAtMs ?? null;
  useEffect(() => {
    if (endedAtMs !== null) void client.invalidateQueries({ queryKey: keys.trial(id) });
  }, [client, id, endedAtMs]);
}

/** Without configured checks, the suggested commands shown beside the button. The server knows the configured ones. */
function commandsOf(checks: ApiChecks | undefined): readonly string[] {
  return checks === undefined || checks.configured.length > 0 ? [] : checks.suggested;
}

function notRun(checks: ApiChecks | undefined): string {
  if (checks === undefined || checks.configured.length > 0) return 'Checks not run for this selection.';
  return checks.suggested.length === 0
    ? 'No checks configured.'
    : `No checks configured. Suggested: ${checks.suggested.map((command) => cleanLine(command, 60)).join(', ')}`;
}
