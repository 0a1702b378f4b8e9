// setup/layers.ts: prepares the layers of an agent's workspace: a snapshot of the base commit and, over it, the output of the
// project's setup commands. Neither changes, whatever the user does to the project meanwhile.
import { explainDiskErrors } from '../run/disk-errors.ts';
import { type RunPlan } from '../run/run-plan.ts';
import { prepareSnapshot, type LayersWish, type PreparedLayers } from '../workspace/prepare-snapshot.ts';
import { ensureSetup } from './setup-layer.ts';
import type { HostContext } from '../run/host-context.ts';

/** Later tasks of the same commit find the layers in milliseconds, whatever the size of the project. */
export function prepareLayers(context: HostContext, plan: RunPlan, want: LayersWish): Promise<PreparedLayers> {
  return explainDiskErrors(context, async () => {
    const { input, base, prepared } = await prepareSnapshot(context, plan, want);
    const setup = await ensureSetup(input, plan, base, prepared, want);
    if (setup === null) return prepared;
    return { ...prepared, layers: [setup.files, ...base.files], exclude: setup.file.roots.map(excludeLine) };
  });
}

/** A line for info/exclude that matches exactly this path, with special characters escaped. */
export function excludeLine(path: string): string {
  return `/${path.replaceAll(/[\\*?[\] !#]/g, String.raw`\$&`)}`;
}
