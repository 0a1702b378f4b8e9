// merge/after-merge.ts: updates the events and the state of a task after a merge of its work, or after an undo.
import type { MergeEvent } from '../protocol/event.ts';
import { advance } from '../protocol/run-state.ts';
import { appendEvent } from '../store/events.ts';
import { eachEvent } from '../store/follow-events.ts';
import type { MergeRecord } from '../store/merges.ts';
import { readTask, writeRun } from '../store/tasks.ts';
import type { HostContext } from '../run/host-context.ts';

/** `again`: the merging process was killed, perhaps after it had called this. */
export async function updateTask(context: HostContext, record: MergeRecord, again = false): Promise<void> {
  const stored = await readTask(context.stateDir, record.task).catch(() => null);
  // The task may have been removed since; the merge remains valid without it.
  if (stored === null) return;
  const event: MergeEvent = {
    type: record.kind === 'merge' ? 'merge.done' : 'merge.undone',
    ref: record.ref,
    commit: record.to,
  };
  if (!again || !isRecorded(stored.paths.events, record.at, event))
    appendEvent(stored.paths.events, { task: stored.task.id, at: new Date(record.at) }, event);
  await updateState(context, record.task, record.kind, record.whole);
}

function isRecorded(file: string, at: string, event: MergeEvent): boolean {
  let recorded = false;
  eachEvent(file, (line) => {
    if (line.type === 'merge.done' || line.type === 'merge.undone')
      recorded ||= line.type === event.type && line.at === at && line.commit === event.commit;
  });
  return recorded;
}

/** `whole`: the merge, or the undone merge, covered everything that the task changed. */
export async function updateState(
  context: HostContext,
  task: string,
  kind: MergeRecord['kind'],
  whole: boolean,
): Promise<void> {
  const stored = await readTask(context.stateDir, task).catch(() => null);
  const [from, to] = kind === 'merge' ? (['ready', 'merged'] as const) : (['merged', 'ready'] as const);
  if (stored === null || !whole) return;
  const { paths } = stored;
  // The reason why the agent ended stays in the events; it does not apply to merged or restored work.
  const { reason: _over, ...run } = stored.run;
  const state = kind === 'merge' && ['failed', 'stopped'].includes(run.state) ? advance(run.state, 'ready') : run.state;
  if (state === from) writeRun(paths, { ...run, state: advance(state, to) }, { durable: true });
}
