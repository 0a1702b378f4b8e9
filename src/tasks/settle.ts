// tasks/settle.ts: a run whose runner was killed, by a power cut or by hand, is put in order when somebody first wants its work: what the
// agent had written by then is brought onto its branch, and the run says what happened.
import { AgsError } from '../protocol/errors.ts';
import { isUnderWay } from '../protocol/run-state.ts';
import { tryLock } from '../lib/lock.ts';
import { appendEvent } from '../store/events.ts';
import { readTask, writeRun, type StoredTask } from '../store/tasks.ts';
import { agentOf, authorOf } from './agent-stage.ts';
import { bringOut } from './bring-out.ts';
import type { World } from './world.ts';

export function isInterrupted({ task, run, live }: StoredTask): boolean {
  return task.goal !== undefined && !live && isUnderWay(run.state);
}

/** The task as it is then; any other as it was given. */
export async function settled(world: World, stored: StoredTask): Promise<StoredTask> {
  const { goal } = stored.task;
  if (goal === undefined || !isInterrupted(stored)) return stored;
  using lock = tryLock(stored.paths.lock);
  if (lock === null)
    throw new AgsError('task.busy', `Another ags command is working on ${stored.task.name}.`, {
      hint: 'Try again when it is done.',
    });
  const began = stored.run.layers !== undefined;
  const result = began ? await bringOut(world, stored, authorOf(agentOf(goal))) : null;
  const reason = 'Its runner was killed. To let it go on: ags continue';
  const run = { ...stored.run, state: 'stopped' as const, reason, result, endedAtMs: world.now().getTime() };
  writeRun(stored.paths, run, { durable: true });
  appendEvent(stored.paths.events, {
    task: stored.task.id,
    at: world.now(),
    type: 'run.ended',
    state: 'stopped',
    reason,
    exitCode: null,
    result,
  });
  return (await readTask(world.stateDir, stored.task.id)) ?? { ...stored, run };
}
