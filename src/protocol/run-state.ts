// protocol/run-state.ts: the states of a run and the one table of moves between them. An illegal move is a bug.
export const RUN_STATES = [
  'preparing',
  'running',
  'ready',
  'no-changes',
  'failed',
  'stopped',
  'merged',
  'discarded',
] as const;
export type RunState = (typeof RUN_STATES)[number];

const TRANSITIONS: Readonly<Record<RunState, readonly RunState[]>> = {
  // A runner that was killed leaves one of these two; what it wrote can be reviewed all the same.
  preparing: ['running', 'failed', 'stopped', 'ready'],
  running: ['ready', 'no-changes', 'failed', 'stopped'],
  ready: ['ready', 'merged', 'discarded'],
  'no-changes': ['discarded'],
  failed: ['ready', 'discarded'],
  stopped: ['ready', 'no-changes', 'discarded'],
  merged: ['discarded'],
  discarded: [],
};

export function advance(from: RunState, to: RunState): RunState {
  if (!TRANSITIONS[from].includes(to)) throw new Error(`illegal move of a run: from ${from} to ${to}`);
  return to;
}
