// tasks/settle-merge.ts: what a merge that is done, or was taken back, means for the task it came from.
import { advance } from '../protocol/run-state.ts';
import { appendEvent } from '../store/events.ts';
import type { MergeRecord } from '../store/merges.ts';
import { readTask, writeRun } from '../store/tasks.ts';
import type { World } from './world.ts';

export async function settleRecord(world: World, record: MergeRecord): Promise<void> {
  const stored = await readTask(world.stateDir, record.task).catch(() => null);
  // The task may have been removed since: the merge stands without it.
  if (stored === null) return;
  appendEvent(stored.paths.events, {
    task: stored.task.id,
    at: world.now(),
    type: record.kind === 'merge' ? 'merge.done' : 'merge.undone',
    ref: record.ref,
    commit: record.to,
  });
  await settleState(world, record.task, record.kind, record.whole);
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
  const { run, paths } = stored;
  const state = kind === 'merge' && ['failed', 'stopped'].includes(run.state) ? advance(run.state, 'ready') : run.state;
  if (state === from) writeRun(paths, { ...run, state: advance(state, to) }, { durable: true });
}
