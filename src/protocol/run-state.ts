// protocol/run-state.ts: the states of a run and the one table of moves between them. An illegal move is a bug.
export const RUN_STATES = [
  'queued',
  'preparing',
  'running',
  'needs-you',
  'ready',
  'no-changes',
  'failed',
  'stopped',
  'merged',
  'discarded',
] as const;
export type RunState = (typeof RUN_STATES)[number];

const TRANSITIONS: Readonly<Record<RunState, readonly RunState[]>> = {
  queued: ['preparing', 'stopped', 'failed'],
  // A runner that was killed leaves one of these three; what it wrote can be reviewed all the same.
  preparing: ['running', 'failed', 'stopped', 'ready'],
  running: ['needs-you', 'ready', 'no-changes', 'failed', 'stopped'],
  'needs-you': ['running', 'ready', 'no-changes', 'failed', 'stopped'],
  // An agent that has ended can be sent another message: it queues again.
  ready: ['ready', 'merged', 'discarded', 'queued'],
  'no-changes': ['discarded', 'queued'],
  failed: ['ready', 'discarded', 'queued'],
  stopped: ['ready', 'no-changes', 'discarded', 'queued'],
  // A merge can be taken back.
  merged: ['ready', 'discarded', 'queued'],
  discarded: [],
};

/** Its runner is at work, or should be: if that is dead, the run was interrupted. */
export function isUnderWay(state: RunState): boolean {
  return UNDER_WAY.has(state);
}

const UNDER_WAY: ReadonlySet<RunState> = new Set(['queued', 'preparing', 'running', 'needs-you']);

export function advance(from: RunState, to: RunState): RunState {
  if (!TRANSITIONS[from].includes(to)) throw new Error(`illegal move of a run: from ${from} to ${to}`);
  return to;
}
