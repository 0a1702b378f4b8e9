// merge/recover-merges.ts: finishes or rolls back merges whose process was killed. Cheap if there are none.
import { pendingMerges } from '../store/merges.ts';
import type { HostContext } from '../run/host-context.ts';

export async function recoverMerges(context: HostContext): Promise<void> {
  const cutOff = pendingMerges(context.stateDir);
  if (cutOff.length > 0) await (await import('./move-branch.ts')).recoverMoves(context, cutOff);
}
