// agent-run/after.ts: a run that begins after another task has ended well, from that task's result.
// Invariant: until then it holds no place in the queue, and nothing begins from work that did not end well. It waits for as long as its
// runner lives; run.json keeps what it waits for, so a later runner waits on.
import type { Goal, RunFile } from '../protocol/task.ts';
import { pause } from '../lib/process/pause.ts';
import { readTask, writeTask, type StoredTask } from '../store/tasks.ts';
import type { HostContext } from '../run/host-context.ts';
import type { WaitingRun } from './queue.ts';

/** Waits for the task that this one begins after. null: the run was stopped. */
export async function afterOther({ context, stored, events, run, control }: WaitingRun): Promise<StoredTask | null> {
  const { goal } = stored.task;
  const { after } = run.now;
  if (after === undefined || goal === undefined) return stored;
  const onWait = (why: string): void => {
    run.set({ reason: `Waiting: ${why}` });
    events.append({ type: 'run.waiting', why });
  };
  const begun = await waitForOther({ context, stored, goal, after, onWait, signal: control.stopped });
  if (begun === null) return null;
  const base = begun.task.goal?.base ?? goal.base;
  run.set({ after: undefined, base });
  run.forgetReason();
  events.append({ type: 'run.noticed', text: `Begins from the result of ${after} (${base.slice(0, 10)}).` });
  return begun;
}

type Begin = Pick<Goal, 'base' | 'baseRef' | 'origin'>;

/** Where the waiting task may begin, or why it has to wait. */
export type AfterVerdict = { readonly begin: Begin } | { readonly why: string };

/** `other`: the task that `name` waits for; null: it was removed or cannot be read. */
export function judgeAfter(
  other: {
    readonly goal: Goal | undefined;
    readonly run: Pick<RunFile, 'state' | 'result'>;
    readonly live: boolean;
  } | null,
  after: string,
  name: string,
): AfterVerdict {
  const without = `ags continue --now ${name}`;
  if (other?.goal === undefined)
    return { why: `${after} was removed or cannot be read. To start without it: ${without}` };
  const { goal, run, live } = other;
  const stays = (what: string): AfterVerdict => ({
    why: `${after} ${what}; this starts when it ends well (ags continue ${after}). To start without it: ${without}`,
  });
  switch (run.state) {
    case 'queued':
    case 'preparing':
    case 'running':
      return live ? { why: `starts when ${after} has ended well` } : stays('was interrupted');
    case 'needs-you':
      return live ? { why: `starts when ${after} has ended well; ${after} needs you` } : stays('was interrupted');
    case 'ready':
    case 'merged': {
      const { result } = run;
      if (result == null) return { begin: beginOf(goal, goal.base) };
      return { begin: { ...beginOf(goal, result.commit), origin: goal.origin ?? goal.base } };
    }
    case 'no-changes':
      return { begin: beginOf(goal, goal.base) };
    case 'failed':
      return stays('failed');
    case 'stopped':
      return stays('was stopped');
    case 'discarded':
      return stays('was discarded');
  }
}

function beginOf({ baseRef, origin }: Goal, base: string): Begin {
  return { base, baseRef, ...(origin === undefined ? {} : { origin }) };
}

/** Returns the task with the commit it begins from; null: the signal came first. */
export async function waitForOther(input: {
  readonly context: HostContext;
  readonly stored: StoredTask;
  readonly goal: Goal;
  readonly after: string;
  onWait(why: string): void;
  readonly signal: AbortSignal;
}): Promise<StoredTask | null> {
  const { context, stored, goal, after, signal } = input;
  let told = '';
  while (!signal.aborted) {
    const other = await readTask(context.stateDir, after).catch(() => null);
    const verdict = judgeAfter(
      other === null ? null : { goal: other.task.goal, run: other.run, live: other.live },
      after,
      stored.task.name,
    );
    if ('begin' in verdict) {
      const { origin: _own, ...rest } = goal;
      const task = { ...stored.task, goal: { ...rest, ...verdict.begin } };
      // On the disk before run.json forgets what it waited for: a power cut must not leave the goal with another commit.
      writeTask(stored.paths, task, { durable: true });
      return { ...stored, task };
    }
    if (verdict.why !== told) input.onWait((told = verdict.why));
    await pause(LOOK_MS, signal);
  }
  return null;
}

const LOOK_MS = 300;
