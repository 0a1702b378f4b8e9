// agent-run/outcome.ts: how a turn or a run has ended, in a state and a reason.
import { oneLine } from '../git/commit-text.ts';
import type { ControlServer } from './control-server.ts';
import type { ModelFailures } from './model/failures.ts';
import type { ModelWaits } from './model/waits.ts';
import type { PlannedAgent } from './plan-agent.ts';
import type { Refusal } from './run-hooks.ts';
import type { TurnEnd } from './turn.ts';

export interface Outcome {
  readonly state: 'ready' | 'no-changes' | 'failed' | 'stopped';
  readonly reason?: string;
  readonly exitCode: number | null;
  /** It failed because it reached a limit. */
  readonly limit?: boolean;
}

/** null: nothing asked the run to stop. */
export function stoppedOutcome({ reason }: ControlServer, exitCode: number | null): Outcome | null {
  if (reason === null) return null;
  return { state: reason.failed ? 'failed' : 'stopped', reason: reason.text, exitCode, limit: reason.failed };
}

export function judge(end: TurnEnd, control: ControlServer, { agent, signIn }: PlannedAgent): Outcome {
  const { exitCode, finished } = end;
  const stopped = stoppedOutcome(control, exitCode);
  if (stopped !== null) return stopped;
  if (end.ended !== null) return { state: 'failed', reason: end.ended, exitCode, limit: true };
  if (end.notFound !== null) return { state: 'failed', reason: end.notFound, exitCode };
  if (finished?.ok === false) {
    // The key of an endpoint of the user's own may be anywhere; only its status says where, and what the endpoint answers.
    const way =
      signIn?.secret.own === undefined
        ? `Sign in again: ags auth ${agent.name}`
        : `Try its key: ags auth status ${agent.name}`;
    const fix = finished.cause === 'sign-in' ? ` ${way}` : '';
    const limit = finished.cause === 'budget' || finished.cause === 'turns';
    return { state: 'failed', reason: `${agent.title}: ${finished.reason ?? 'it failed'}.${fix}`, exitCode, limit };
  }
  if (exitCode !== 0) return { state: 'failed', reason: `${agent.title} exited with code ${exitCode}.`, exitCode };
  return { state: 'ready', exitCode };
}

/** After a post-stop hook has refused as often as it may. */
export function refused({ reason, by }: Refusal, exitCode: number | null): Outcome {
  const why = by === undefined ? reason : `The hook ${by.hook} still refuses: ${by.said}`;
  return { state: 'failed', reason: oneLine(why, 1000), exitCode };
}

/** When a run goes on whose agent gave up because its model refused; null: never. */
export function goesOnLater(
  { state, limit }: Outcome,
  { finished }: TurnEnd,
  metered: boolean,
  failure: ModelFailures['now'],
  waits: ModelWaits,
): number | null {
  if (state !== 'failed' || limit === true) return null;
  if (failure !== null) return waits.next(failure.status, failure.againAtMs);
  // An agent is believed only where the gateway does not see its requests.
  return !metered && finished?.ok === false && finished.cause === 'rate-limit' ? waits.next(429, null) : null;
}
