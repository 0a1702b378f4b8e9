// web/src/task/ask-card.tsx: a host that no rule allows, with buttons to allow or block it. Unanswered requests are denied.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Ban, CircleHelp } from 'lucide-react';
import type { ReactNode } from 'react';
import { api } from '../api/client.ts';
import { keys } from '../api/queries.ts';
import { cleanLine } from '../text/clean.ts';
import { Button } from '../ui/button.tsx';
import { useNow } from '../ui/now.ts';
import { showToast, showFailure } from '../ui/toasts.tsx';

export interface HostAsk {
  readonly host: string;
  readonly port: number;
  readonly tries: number;
  readonly program: string | null;
  readonly reason: string;
  /** When the request is denied without an answer; null: it was denied already. */
  readonly untilMs: number | null;
}

export function AskCard({
  ask,
  task,
  live,
  onRetry,
}: {
  ask: HostAsk;
  task: string;
  live: boolean;
  onRetry?: ((host: string) => void) | undefined;
}): ReactNode {
  const where = ruleOf({ host: cleanLine(ask.host, 120), port: ask.port });
  const waits = ask.untilMs !== null;
  const Sign = waits ? CircleHelp : Ban;
  return (
    <div
      role="group"
      aria-label={`Network: ${where}`}
      className={`max-w-[80ch] rounded-lg border p-3 ${waits ? 'border-warn bg-warn-bg' : 'border-line bg-bg'}`}
    >
      <p className="flex items-start gap-2">
        <Sign size={16} aria-hidden className={`mt-0.5 shrink-0 ${waits ? 'text-warn' : 'text-bad'}`} />
        <span className="min-w-0 wrap-anywhere">
          <span className={`font-medium ${waits ? 'text-warn' : 'text-bad'}`}>{waits ? 'Asking for' : 'Blocked'}</span>{' '}
          <span className="font-mono text-sm font-medium">{where}</span>
          {ask.tries > 1 ? <span className="tabular text-muted"> ×{ask.tries}</span> : null}
        </span>
      </p>
      <p className="mt-1 pl-6 text-sm wrap-anywhere text-muted">
        {sentence([
          ask.program === null ? '' : `requested by ${cleanLine(ask.program, 80)}`,
          waits ? '' : cleanLine(ask.reason, 200),
        ])}
        Allowing it lets the agent send data there.
      </p>
      <div className="mt-2 flex flex-wrap items-center gap-2 pl-6">
        <HostButtons host={ask.host} port={ask.port} task={task} live={live} onRetry={onRetry} />
        {ask.untilMs === null ? null : <Countdown untilMs={ask.untilMs} />}
      </div>
    </div>
  );
}

/** The rule for a host. Port 0 means that only its name was looked up: the rule then covers the default port. */
export function ruleOf({ host, port }: { readonly host: string; readonly port: number }): string {
  return port === 443 || port === 0 ? host : `${host}:${port}`;
}

export const retryMessage = (host: string): string => `${host} is allowed now. Retry the step that needed it.`;

function sentence(parts: readonly string[]): string {
  const words = parts
    .map((part) => part.replace(/\.$/, ''))
    .filter((part) => part !== '')
    .join('; ');
  return words === '' ? '' : `${words.charAt(0).toUpperCase()}${words.slice(1)}. `;
}

export function HostButtons({
  host,
  port,
  task,
  live,
  onRetry,
}: {
  host: string;
  port: number;
  task: string;
  live: boolean;
  onRetry?: ((host: string) => void) | undefined;
}): ReactNode {
  const change = useRuleChange(task, onRetry);
  const rule = ruleOf({ host, port });
  return (
    <>
      <Button
        size="small"
        disabled={!live || change.isPending}
        title={live ? undefined : 'The run has ended'}
        onClick={() => change.mutate({ action: 'allow', rule, scope: 'run' })}
      >
        Allow for this run
      </Button>
      <Button
        size="small"
        disabled={change.isPending}
        onClick={() => change.mutate({ action: 'allow', rule, scope: 'project' })}
      >
        Always allow
      </Button>
      <Button
        size="small"
        disabled={change.isPending}
        onClick={() => change.mutate({ action: 'deny', rule, scope: live ? 'run' : 'project' })}
      >
        Keep blocked
      </Button>
    </>
  );
}

export function useRuleChange(task: string, onRetry?: (host: string) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (change: { action: 'allow' | 'deny'; rule: string; scope: 'run' | 'project' }) =>
      api.changeRule({ task }, change),
    onSuccess: async ({ text }, { action, rule }) => {
      const again = { label: 'Tell the agent to retry', do: () => onRetry?.(rule) };
      showToast(cleanLine(text), action === 'allow' && onRetry !== undefined ? { action: again } : {});
      await client.invalidateQueries({ queryKey: keys.task(task) });
      await client.invalidateQueries({ queryKey: ['network'] });
    },
    onError: (error) => showFailure(error, 'The rule was not changed'),
  });
}

function Countdown({ untilMs }: { untilMs: number }): ReactNode {
  const seconds = Math.max(0, Math.ceil((untilMs - useNow()) / 1000));
  return <span className="tabular text-sm text-warn">Blocked in {seconds} s unless you answer</span>;
}
