// projects/opened-directory.ts: where the branch of a task lies when it is open in an editor.
import { join } from 'node:path';
import type { World } from '../run/host-context.ts';

export function openedDirectory({ dataDir }: Pick<World, 'dataDir'>, taskId: string): string {
  return join(dataDir, 'open', taskId);
}
