// web/src/network/attempts.tsx: connection attempts, newest first, with buttons to allow or block each host.
import { Link } from '@tanstack/react-router';
import { Ban, Check, CircleHelp } from 'lucide-react';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { ApiAttempt } from '../../../src/protocol/api/api.ts';
import { useAction } from '../actions/registry.ts';
import { useTasks } from '../api/queries.ts';
import { HostButtons, ruleOf, useRuleChange } from '../task/ask-card.tsx';
import { cleanLine } from '../text/clean.ts';
import { ago, bytes } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { useConfirm } from '../ui/confirm.tsx';
import { useNow } from '../ui/now.ts';

const PAGE = 100;

export function Attempts({ attempts, project }: { attempts: readonly ApiAttempt[]; project: string }): ReactNode {
  const [most, setMost] = useState(PAGE);
  const [at, setAt] = useState(-1);
  const { data: tasks } = useTasks();
  const byId = new Map(tasks?.tasks.map((task) => [task.id, task]));
  const sorted = attempts.toSorted((a, b) => b.lastAtMs - a.lastAtMs).slice(0, most);
  const current = sorted[at];
  const change = useRuleChange(current?.task ?? '');
  const move = (step: 1 | -1): void => {
    const next = Math.min(sorted.length - 1, Math.max(0, at + step));
    setAt(next);
    document.querySelector<HTMLElement>(`#attempt-${next}`)?.focus();
  };
  const [confirm, askFirst] = useConfirm();
  const ask = (action: 'allow' | 'deny', scope: 'run' | 'project'): void => {
    if (current === undefined) return;
    const rule = ruleOf(current);
    askFirst({
      title: `${action === 'allow' ? 'Allow' : 'Block'} ${cleanLine(rule, 120)} ${scope === 'run' ? 'for this run' : 'in this project'}?`,
      label: action === 'allow' ? 'Allow' : 'Block',
      do: () => change.mutate({ action, scope, rule }),
    });
  };
  useAction('network-down', () => move(1));
  useAction('network-up', () => move(-1));
  useAction('network-allow', () => ask('allow', 'run'), current !== undefined);
  useAction('network-always', () => ask('allow', 'project'), current !== undefined);
  useAction('network-block', () => ask('deny', 'project'), current !== undefined);
  return (
    <>
      {confirm}
      <ul className="border-t border-line">
        {sorted.map((attempt, index) => (
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- shortcuts act on the focused row
          <li
            key={`${attempt.task} ${attempt.host} ${attempt.port} ${attempt.verdict}`}
            id={`attempt-${index}`}
            tabIndex={-1}
            onFocus={() => setAt(index)}
            className="grid gap-x-4 gap-y-1 border-b border-line px-3 py-2 focus:bg-panel sm:grid-cols-[6rem_minmax(0,1.4fr)_minmax(0,1fr)_6rem] sm:items-center xl:grid-cols-[7rem_minmax(0,1.4fr)_minmax(0,1fr)_9rem_auto]"
          >
            <Verdict verdict={attempt.verdict} />
            <div className="min-w-0">
              <p className="truncate font-mono text-sm font-medium" title={cleanLine(attempt.host)}>
                {cleanLine(attempt.host, 200)}
                <span className="font-normal text-muted">:{attempt.port}</span>
              </p>
              <p className="truncate text-sm text-muted" title={cleanLine(attempt.why)}>
                {cleanLine(attempt.why, 200)}
              </p>
            </div>
            <div className="min-w-0 text-sm">
              <Link
                to="/p/$project/t/$task"
                params={{ project, task: attempt.task }}
                search={{}}
                className="block truncate hover:underline"
              >
                {cleanLine(byId.get(attempt.task)?.name ?? attempt.task)}
              </Link>
              <p className="truncate text-muted">{attempt.program === null ? '' : cleanLine(attempt.program, 120)}</p>
            </div>
            <p className="tabular text-sm text-muted">
              ×{attempt.tries}
              {attempt.bytesIn + attempt.bytesOut > 0 ? `, ${bytes(attempt.bytesIn + attempt.bytesOut)}` : ''}
              <span className="sm:hidden">, </span>
              <br className="hidden sm:block" />
              <Ago atMs={attempt.lastAtMs} />
            </p>
            <div className="flex flex-wrap gap-2 sm:col-span-3 sm:col-start-2 xl:col-span-1 xl:col-start-auto xl:w-80 xl:justify-end">
              {attempt.verdict === 'allowed' ? null : (
                <HostButtons
                  host={attempt.host}
                  port={attempt.port}
                  task={attempt.task}
                  live={byId.get(attempt.task)?.live ?? false}
                />
              )}
            </div>
          </li>
        ))}
      </ul>
      {attempts.length > most ? (
        <Button className="mt-3" onClick={() => setMost(most + PAGE)}>
          Show {Math.min(PAGE, attempts.length - most)} more of {attempts.length}
        </Button>
      ) : null}
    </>
  );
}

function Verdict({ verdict }: { verdict: ApiAttempt['verdict'] }): ReactNode {
  const [Sign, word, colour] =
    verdict === 'allowed'
      ? ([Check, 'Allowed', 'text-ok'] as const)
      : verdict === 'asked'
        ? ([CircleHelp, 'Asking', 'text-warn'] as const)
        : ([Ban, 'Blocked', 'text-bad'] as const);
  return (
    <p className={`flex items-center gap-1.5 font-medium ${colour}`}>
      <Sign size={16} aria-hidden /> {word}
    </p>
  );
}

function Ago({ atMs }: { atMs: number }): ReactNode {
  return <time dateTime={new Date(atMs).toISOString()}>{ago(atMs, useNow())}</time>;
}
