// protocol/run-state.ts: the states of a run, the word for each, and the one table of transitions. A transition that is not in it is a bug.
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

/** The states that users see. "interrupted": its runner was killed. "damaged": its files cannot be read. */
export const SHOWN_STATES = [...RUN_STATES, 'interrupted', 'damaged'] as const;
export type ShownState = (typeof SHOWN_STATES)[number];

/** A log that was imported can name others. */
export function isShownState(state: string): state is ShownState {
  return (SHOWN_STATES as readonly string[]).includes(state);
}

/** The word for each state, wherever a person reads it: the terminal, logs and the page. */
export const STATE_WORDS: Readonly<Record<ShownState, string>> = {
  queued: 'queued',
  preparing: 'preparing',
  running: 'running',
  'needs-you': 'needs you',
  ready: 'ready',
  'no-changes': 'no changes',
  failed: 'failed',
  stopped: 'stopped',
  merged: 'merged',
  discarded: 'discarded',
  interrupted: 'interrupted',
  damaged: 'damaged',
};

const TRANSITIONS: Readonly<Record<RunState, readonly RunState[]>> = {
  queued: ['preparing', 'stopped', 'failed'],
  // A killed runner leaves one of these three states; its work can still be reviewed.
  preparing: ['running', 'failed', 'stopped', 'ready'],
  // Queued again: its model refuses for now.
  running: ['needs-you', 'ready', 'no-changes', 'failed', 'stopped', 'queued'],
  'needs-you': ['running', 'ready', 'no-changes', 'failed', 'stopped', 'queued'],
  // A message to an ended agent queues its task again.
  ready: ['ready', 'merged', 'discarded', 'queued'],
  'no-changes': ['discarded', 'queued'],
  failed: ['ready', 'discarded', 'queued'],
  stopped: ['ready', 'no-changes', 'discarded', 'queued'],
  // A merge can be undone.
  merged: ['ready', 'discarded', 'queued'],
  discarded: [],
};

/** Whether a runner should be alive; if it is dead, the run was interrupted. */
export function isUnderWay(state: RunState): boolean {
  return UNDER_WAY.has(state);
}

const UNDER_WAY: ReadonlySet<RunState> = new Set(['queued', 'preparing', 'running', 'needs-you']);

export function advance(from: RunState, to: RunState): RunState {
  if (!TRANSITIONS[from].includes(to)) throw new Error(`illegal move of a run: from ${from} to ${to}`);
  return to;
}

/** Whether its agent was ever started. A run that has not begun is started with its goal, and not continued. */
export function hasBegun({
  turns,
  begins,
}: {
  readonly turns?: number | undefined;
  readonly begins?: string | undefined;
}): boolean {
  return turns !== undefined || begins !== undefined;
}
