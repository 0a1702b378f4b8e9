// merge/recover-merges.ts: what a merge that is done, or was taken back, means for the task it came from.
import { advance } from '../protocol/run-state.ts';
import { appendEvent } from '../store/events.ts';
import { eachEvent } from '../store/follow-events.ts';
import type { MergeRecord } from '../store/merges.ts';
import { readTask, writeRun } from '../store/tasks.ts';
import type { World } from '../run/host-context.ts';

/** `again`: whoever did it was cut off, perhaps after this. */
export async function settleRecord(world: World, record: MergeRecord, again = false): Promise<void> {
  const stored = await readTask(world.stateDir, record.task).catch(() => null);
  // The task may have been removed since: the merge stands without it.
  if (stored === null) return;
  const event = {
    at: record.at,
    type: record.kind === 'merge' ? 'merge.done' : 'merge.undone',
    ref: record.ref,
    commit: record.to,
  };
  if (!again || !isTold(stored.paths.events, event))
    appendEvent(stored.paths.events, { ...event, task: stored.task.id, at: new Date(record.at) });
  await settleState(world, record.task, record.kind, record.whole);
}

function isTold(file: string, event: { at: string; type: string; commit: string }): boolean {
  let told = false;
  eachEvent(file, ({ at, type, commit }) => {
    told ||= at === event.at && type === event.type && commit === event.commit;
  });
  return told;
}

/** `whole`: everything that the task changed is on a branch of the user's, or was and is no longer. */
export async function settleState(
  world: World,
  task: string,
  kind: MergeRecord['kind'],
  whole: boolean,
): Promise<void> {
  const stored = await readTask(world.stateDir, task).catch(() => null);
  const [from, to] = kind === 'merge' ? (['ready', 'merged'] as const) : (['merged', 'ready'] as const);
  if (stored === null || !whole) return;
  const { paths } = stored;
  // Why its agent ended before is in its events; about work that was taken, or was given back, it says nothing.
  const { reason: _over, ...run } = stored.run;
  const state = kind === 'merge' && ['failed', 'stopped'].includes(run.state) ? advance(run.state, 'ready') : run.state;
  if (state === from) writeRun(paths, { ...run, state: advance(state, to) }, { durable: true });
}
