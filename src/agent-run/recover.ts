// agent-run/recover.ts: a run whose runner was killed, by a power cut or by hand, or whose work could not be brought out when it ended, as on a
// full disk, is put in order when somebody first wants its work: what the agent had written by then is brought onto its branch.
import { isUnderWay } from '../protocol/run-state.ts';
import { appendEvent } from '../store/events.ts';
import { readTask, writeRun, type StoredTask } from '../store/tasks.ts';
import { agentOf, authorOf } from './plan-agent.ts';
import { bringOut, type BroughtOut } from '../results/bring-out.ts';
import { holdTask } from '../store/task-lock.ts';
import type { World } from '../run/host-context.ts';

/** The task as it is then; any other as it was given. */
export async function settled(world: World, stored: StoredTask): Promise<StoredTask> {
  const { task, run, paths, live } = stored;
  const interrupted = isUnderWay(run.state);
  if (task.goal === undefined || live || !(interrupted || run.fetched === false)) return stored;
  using _held = holdTask(stored);
  const began = run.layers !== undefined;
  const result = began ? await bringOut(world, stored, authorOf(agentOf(task.goal))) : null;
  const tell = (event: { type: string; [field: string]: unknown }): void =>
    void appendEvent(paths.events, { ...event, task: task.id, at: world.now() });
  if (interrupted) endNow(world, stored, result, tell);
  else {
    writeRun(paths, { ...run, result, fetched: true }, { durable: true });
    if (result !== null) tell({ type: 'changes.captured', branch: `ags/${task.name}`, ...result });
  }
  return (await readTask(world.stateDir, task.id)) ?? stored;
}

function endNow(
  world: World,
  { paths, run }: StoredTask,
  result: BroughtOut | null,
  tell: (event: { type: string; [field: string]: unknown }) => void,
): void {
  const reason = 'Its runner was killed. To let it go on: ags continue';
  const ended = { ...run, state: 'stopped' as const, reason, result, fetched: true, endedAtMs: world.now().getTime() };
  writeRun(paths, ended, { durable: true });
  tell({ type: 'run.ended', state: 'stopped', reason, exitCode: null, result });
}
