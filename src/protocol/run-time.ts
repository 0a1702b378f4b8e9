// protocol/run-time.ts: how long a run worked, and how long it waited for its turn or for a person.
// Invariant: each moment counts at most once. The time between an end and the next message counts as neither.
import type { RunState } from './run-state.ts';

export const RUN_PHASES = ['work', 'queue', 'user'] as const;
type RunPhase = (typeof RUN_PHASES)[number];

interface Sums {
  readonly workMs: number;
  readonly queueMs: number;
  readonly userMs: number;
}

/** The sums of the phases that are over, and since when the present one goes on; null: none does. */
export interface RunTime extends Sums {
  readonly phase: RunPhase | null;
  readonly sinceMs: number;
}

export interface TimedRun {
  readonly state: RunState;
  readonly needs?: string | undefined;
  readonly startedAtMs: number;
  readonly endedAtMs?: number | undefined;
  readonly time?: (Sums & { readonly sinceMs: number }) | undefined;
}

/** What a live run spends its time with. With a failed service ("look"), the agent goes on. */
export function phaseOf({ state, needs }: Pick<TimedRun, 'state' | 'needs'>): RunPhase | null {
  if (state === 'queued') return 'queue';
  if (state === 'needs-you') return needs === 'look' ? 'work' : 'user';
  return state === 'preparing' || state === 'running' ? 'work' : null;
}

export function timeOf(run: TimedRun): RunTime {
  const phase = phaseOf(run);
  if (run.time !== undefined) return { ...run.time, phase };
  // A command has no queue and asks no one.
  const workMs = phase === null ? Math.max(0, (run.endedAtMs ?? run.startedAtMs) - run.startedAtMs) : 0;
  return { workMs, queueMs: 0, userMs: 0, phase, sinceMs: run.startedAtMs };
}

/** With the present phase up to now. */
export function sumsAt({ phase, sinceMs, ...sums }: RunTime, nowMs: number): Sums {
  if (phase === null) return sums;
  const key = `${phase}Ms` as const;
  return { ...sums, [key]: sums[key] + Math.max(0, nowMs - sinceMs) };
}
