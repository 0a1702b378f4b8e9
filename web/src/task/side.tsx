// web/src/task/side.tsx: the panel beside the timeline: files, network, services and limits.
import { Link } from '@tanstack/react-router';
import { Check, ScrollText, ShieldAlert, ShieldCheck, SquareTerminal } from 'lucide-react';
import type { ReactNode } from 'react';
import type { ApiTaskDetail } from '../../../src/protocol/api/api.ts';
import { useAction } from '../actions/registry.ts';
import { useNetwork } from '../network/use-network.ts';
import { cleanLine } from '../text/clean.ts';
import { ago, bytes, duration, money } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { useConfirm } from '../ui/confirm.tsx';
import { DiffStat, SectionTitle } from '../ui/figures.tsx';
import { useNow } from '../ui/now.ts';
import { AskCard, retryMessage, ruleOf, useRuleChange } from './ask-card.tsx';
import type { Panel } from './header.tsx';
import { ServicesPanel } from './services-panel.tsx';

const MOST_FILES = 60;
const MOST_ALLOWED = 12;

export function Side({
  task,
  send,
  onPanel,
}: {
  task: ApiTaskDetail;
  send: ((text: string) => void) | null;
  onPanel: (panel: Panel) => void;
}): ReactNode {
  return (
    <aside aria-label="Files, network and limits" className="flex flex-col gap-6 p-4">
      <div className="flex gap-2">
        <Button
          className="grow"
          disabled={!task.can.includes('terminal')}
          title={task.can.includes('terminal') ? undefined : 'Available while the task runs'}
          onClick={() => onPanel('terminal')}
        >
          <SquareTerminal size={16} aria-hidden /> Terminal
        </Button>
        <Button className="grow" onClick={() => onPanel('logs')}>
          <ScrollText size={16} aria-hidden /> Logs
        </Button>
      </div>
      <FilesSoFar task={task} />
      <NetworkPanel task={task} send={send} />
      <ServicesPanel task={task} />
      <Limits task={task} />
    </aside>
  );
}

function FilesSoFar({ task }: { task: ApiTaskDetail }): ReactNode {
  const files = task.touched.toReversed();
  return (
    <section>
      <div className="mb-2 flex items-baseline justify-between">
        <SectionTitle count={task.files ?? files.length}>{task.live ? 'Files so far' : 'Files'}</SectionTitle>
        <span className="text-sm">
          <DiffStat added={task.added} removed={task.removed} />
        </span>
      </div>
      {files.length === 0 ? (
        <p className="text-sm text-muted">{task.live ? 'No files changed yet.' : 'No files changed.'}</p>
      ) : (
        <ul className="text-sm">
          {files.slice(0, MOST_FILES).map(({ path, change }) => (
            <li key={path} className="flex min-h-6 items-center gap-2">
              <span aria-hidden className="w-4 shrink-0 text-center font-mono text-xs text-muted">
                {CHANGES[change]?.sign ?? 'M'}
              </span>
              <span className="truncate font-mono text-sm" title={cleanLine(path)}>
                {cleanLine(path, 300)}
              </span>
              <span className="unseen">{CHANGES[change]?.word ?? change}</span>
            </li>
          ))}
        </ul>
      )}
      {files.length > MOST_FILES ? <p className="text-sm text-muted">and {files.length - MOST_FILES} more</p> : null}
    </section>
  );
}

const CHANGES: Readonly<Record<string, { sign: string; word: string }>> = {
  write: { sign: 'W', word: 'written' },
  edit: { sign: 'E', word: 'edited' },
  delete: { sign: 'D', word: 'deleted' },
};

function NetworkPanel({ task, send }: { task: ApiTaskDetail; send: ((text: string) => void) | null }): ReactNode {
  const { data } = useNetwork(task.project, task.id);
  const attempts = data?.attempts ?? [];
  const waiting = new Map(task.asks.map((ask) => [`${ask.host}:${ask.port}`, ask]));
  const refused = attempts.filter(({ verdict, host, port }) => verdict !== 'allowed' || waiting.has(`${host}:${port}`));
  const unseen = task.asks.filter(({ host, port }) => !refused.some((one) => one.host === host && one.port === port));
  const allowed = attempts.filter((one) => !refused.includes(one));
  const retry = send === null ? undefined : (host: string) => send(retryMessage(host));
  const change = useRuleChange(task.id, retry);
  const [first] = [...task.asks, ...refused];
  const [confirm, askFirst] = useConfirm();
  useAction(
    'allow-run',
    () =>
      first !== undefined &&
      askFirst({
        title: `Allow ${cleanLine(ruleOf(first), 120)} for this run?`,
        label: 'Allow',
        about: 'The agent can then send data there.',
        do: () => change.mutate({ action: 'allow', rule: ruleOf(first), scope: 'run' }),
      }),
    first !== undefined && task.live,
  );
  return (
    <section>
      {confirm}
      <div className="mb-2 flex items-baseline justify-between">
        <SectionTitle>Network</SectionTitle>
        <Link
          to="/p/$project/network"
          params={{ project: task.project }}
          search={{ task: task.id }}
          className="inline-flex h-6 items-center text-sm text-accent hover:underline"
        >
          Show all
        </Link>
      </div>
      {attempts.length === 0 && unseen.length === 0 ? (
        <p className="text-sm text-muted">No connection attempts.</p>
      ) : null}
      <div className="flex flex-col gap-2">
        {unseen.map((ask) => (
          <AskCard
            key={`${ask.host}:${ask.port}`}
            ask={{ ...ask, tries: 1, reason: '' }}
            task={task.id}
            live={task.live}
            onRetry={retry}
          />
        ))}
        {refused.map((one) => (
          <AskCard
            key={`${one.host}:${one.port}`}
            ask={{ ...one, reason: one.why, untilMs: waiting.get(`${one.host}:${one.port}`)?.untilMs ?? null }}
            task={task.id}
            live={task.live}
            onRetry={retry}
          />
        ))}
      </div>
      <ul className="mt-2 text-sm">
        {allowed.slice(0, MOST_ALLOWED).map((one) => (
          <li key={`${one.host}:${one.port}`} className="flex min-h-6 items-center gap-2" title={cleanLine(one.why)}>
            <Check size={14} className="shrink-0 text-ok" aria-label="Allowed" />
            <span className="min-w-0 grow truncate font-mono">{cleanLine(one.host, 120)}</span>
            <span className="tabular shrink-0 text-muted">
              ×{one.tries}, {bytes(one.bytesIn + one.bytesOut)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Limits({ task }: { task: ApiTaskDetail }): ReactNode {
  const { maxSeconds, maxCostMicros, maxTurns } = task.limits;
  const now = useNow();
  const spent = (task.endedAtMs ?? now) - task.startedAtMs;
  return (
    <section>
      <div className="mb-2">
        <SectionTitle>Limits</SectionTitle>
      </div>
      <dl className="flex flex-col gap-2 text-sm">
        <Meter
          name="Time"
          words={`${duration(spent)}${maxSeconds === null ? '' : ` of ${duration(maxSeconds * 1000)}`}`}
          part={maxSeconds === null ? null : spent / (maxSeconds * 1000)}
        />
        {task.costMicros === null && maxCostMicros === null ? null : (
          <Meter
            name="Cost"
            words={`${money(task.costMicros ?? 0)}${maxCostMicros === null ? '' : ` of ${money(maxCostMicros)}`}`}
            part={maxCostMicros === null ? null : (task.costMicros ?? 0) / maxCostMicros}
          />
        )}
        {task.budgets.map(({ costMicros, spentMicros, per, of }) => (
          <Meter
            key={`${of} ${per}`}
            name={of === 'user' ? 'All tasks' : 'All of this project'}
            words={`${money(spentMicros)} of ${money(costMicros)} ${per === 'day' ? 'today' : 'this month'}`}
            part={costMicros === 0 ? 1 : spentMicros / costMicros}
          />
        ))}
        {maxTurns === null ? null : (
          <Meter name="Turns" words={`${task.turns} of ${maxTurns}`} part={task.turns / maxTurns} />
        )}
        {task.inputTokens === null ? null : (
          <Meter
            name="Tokens"
            words={`${task.inputTokens.toLocaleString('en')} in, ${(task.outputTokens ?? 0).toLocaleString('en')} out`}
            part={null}
          />
        )}
      </dl>
      <AttackTest attacked={task.attacked} />
    </section>
  );
}

function Meter({ name, words, part }: { name: string; words: string; part: number | null }): ReactNode {
  const full = part === null ? 0 : Math.min(1, part);
  return (
    <div className="flex flex-wrap justify-between gap-x-3">
      <dt className="text-muted">{name}</dt>
      <dd className="tabular">{words}</dd>
      {part === null ? null : (
        <dd aria-hidden className="mt-1 h-1 basis-full rounded-full bg-raised">
          <div
            className={`h-1 rounded-full ${full > 0.9 ? 'bg-bad' : full > 0.7 ? 'bg-warn' : 'bg-accent'}`}
            style={{ width: `${full * 100}%` }}
          />
        </dd>
      )}
    </div>
  );
}

/** The last result of `ags doctor --attack` on a sandbox with the same configuration. */
function AttackTest({ attacked }: Pick<ApiTaskDetail, 'attacked'>): ReactNode {
  const now = useNow();
  if (attacked === null) return null;
  const { held, of, atMs } = attacked;
  const Shield = held === of ? ShieldCheck : ShieldAlert;
  return (
    <p
      className="mt-2 flex items-center gap-2 text-sm text-muted"
      title={`ags doctor --attack tried ${of} attacks on a sandbox like this one; ${held} were stopped or limited.`}
    >
      <Shield size={16} aria-hidden className={held === of ? 'text-ok' : 'text-bad'} />
      <span>
        Attack test {held}/{of} · {ago(atMs, now)}
      </span>
    </p>
  );
}
