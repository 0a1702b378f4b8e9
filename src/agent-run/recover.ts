// agent-run/recover.ts: recovers the work of a run whose runner was killed, or whose work could not be brought out at its end, as on
// a full disk. The first command that needs the work brings the agent's files onto its branch.
import type { TaskEvent } from '../protocol/event.ts';
import { isUnderWay } from '../protocol/run-state.ts';
import { appendEvent } from '../store/events.ts';
import { readTask, writeRun, type StoredTask } from '../store/tasks.ts';
import { agentOf, authorOf } from './plan-agent.ts';
import { bringOut, type BroughtOut } from '../results/bring-out.ts';
import { holdTask } from '../store/task-lock.ts';
import { timeSoFar } from '../queries/list.ts';
import type { HostContext } from '../run/host-context.ts';

/** Returns the task after recovery; a task that needs none is returned unchanged. */
export async function recoverWork(context: HostContext, stored: StoredTask): Promise<StoredTask> {
  const { task, run, paths, live } = stored;
  const interrupted = isUnderWay(run.state);
  if (task.goal === undefined || live || !(interrupted || run.fetched === false)) return stored;
  using _held = holdTask(stored);
  const soFar = timeSoFar(stored);
  const began = run.layers !== undefined;
  const result = began ? await bringOut(context, stored, authorOf(agentOf(task.goal))) : null;
  const tell = (event: TaskEvent): void => appendEvent(paths.events, { task: task.id, at: context.now() }, event);
  if (interrupted) endNow(context, stored, soFar, result, tell);
  else {
    writeRun(paths, { ...run, result, fetched: true }, { durable: true });
    if (result !== null) tell({ type: 'changes.captured', branch: `ags/${task.name}`, ...result });
  }
  return (await readTask(context.stateDir, task.id)) ?? stored;
}

function endNow(
  context: HostContext,
  { task, paths, run }: StoredTask,
  soFar: ReturnType<typeof timeSoFar>,
  result: BroughtOut | null,
  tell: (event: TaskEvent) => void,
): void {
  const reason = `Its runner was killed. To go on: ags continue ${task.name}`;
  const ended = {
    ...run,
    time: { ...soFar, sinceMs: context.now().getTime() },
    state: 'stopped' as const,
    reason,
    result,
    fetched: true,
    interrupted: true,
    endedAtMs: context.now().getTime(),
  };
  writeRun(paths, ended, { durable: true });
  tell({ type: 'run.ended', state: 'stopped', reason, exitCode: null, result });
}
