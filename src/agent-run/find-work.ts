// agent-run/find-work.ts: finds a task for commands that use its work. If its runner was killed, recovers the work first.
import { findTask } from '../queries/find-task.ts';
import type { HostContext } from '../run/host-context.ts';
import type { StoredTask } from '../store/tasks.ts';

export async function findWork(
  context: HostContext,
  name: string | undefined,
  options: { say?: (text: string) => void } = {},
): Promise<StoredTask> {
  const found = await findTask(context, name, options);
  const { recoverWork } = await import('./recover.ts');
  return recoverWork(context, found);
}
