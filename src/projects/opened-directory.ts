// projects/opened-directory.ts: the directory that holds a task while it is open in an editor.
import { join } from 'node:path';
import type { HostContext } from '../run/host-context.ts';

export function openedDirectory({ dataDir }: Pick<HostContext, 'dataDir'>, taskId: string): string {
  return join(dataDir, 'open', taskId);
}
