// exec/has-changes.ts: did a finished sandbox change anything at all? The cheap question, asked after every run.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { FAR_MEMO } from '../sandbox/backend.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { RunPlan } from '../run/plan-run.ts';

export async function hasChanges(
  paths: TaskPaths,
  plan: Pick<RunPlan, 'workspace' | 'project' | 'hidden' | 'layers'>,
): Promise<boolean> {
  try {
    // What it wrote is still on another machine.
    if (existsSync(join(paths.runDir, FAR_MEMO))) return true;
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
    // What cannot be looked at may hold work: it is never thrown away for that.
    return true;
  }
}
