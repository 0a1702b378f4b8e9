// exec/has-changes.ts: did a finished sandbox change anything? A cheap check after every run.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { REMOTE_MEMO } from '../sandbox/backend.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { RunPlan } from '../run/run-plan.ts';

export async function hasChanges(
  paths: TaskPaths,
  plan: Pick<RunPlan, 'workspace' | 'project' | 'hidden' | 'layers'>,
): Promise<boolean> {
  try {
    // Its files are still on a remote engine.
    if (existsSync(join(paths.runDir, REMOTE_MEMO))) return true;
    if (plan.workspace === 'overlay')
      return (
        existsSync(paths.upper) &&
        readdirSync(paths.upper).some((name) => name !== '.git' || plan.project.repository === null)
      );
    const { listCopy } = await import('../results/list-copy.ts');
    const listing = listCopy({
      copy: paths.copy,
      original: plan.layers?.map(({ path }) => path) ?? [plan.project.root],
      hidden: (path) => plan.hidden.paths.includes(path),
    });
    return listing.entries.length > 0 || listing.refused.length > 0;
  } catch {
    // An unreadable workspace may hold work, so it is kept.
    return true;
  }
}
