// services/mount-data.ts: the data directory of a service in one run: a copy-on-write view of its seeded layer, or a copy.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { hostPath, type WorkspaceMount } from '../protocol/spec.ts';
import { layerAt, replaceFile } from '../lib/files.ts';
import { run } from '../lib/process/process.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { PlannedService } from '../run/planned-services.ts';
import { ensureData } from './data.ts';
import { emptyData, makeOwn } from './sandbox.ts';
import type { ServiceRoot } from './root.ts';
import type { SeedSource } from '../workspace/seed-files.ts';
import type { HostContext } from '../run/host-context.ts';

/** A run that continues gets its data as it left it, on the same layer as before. */
export async function mountData(
  input: { context: HostContext; on: ServiceRoot; task: string; source: SeedSource },
  one: PlannedService,
  paths: TaskPaths,
  want: { signal: AbortSignal; onSeeding(): void; onLayer(layer: string): void },
): Promise<WorkspaceMount> {
  const { context, on, task, source } = input;
  const { plan } = on;
  const note = join(paths.root, 'layer');
  const earlier = existsSync(note) ? readFileSync(note, 'utf8') : null;
  const layer =
    earlier !== null && (earlier === '' || existsSync(earlier))
      ? earlier
      : ((await ensureData(context, on, one, { task, source, ...want }))?.files ?? '');
  if (layer === '') {
    replaceFile(note, '');
    return emptyData(paths, plan);
  }
  want.onLayer(layer);
  if (plan.workspace === 'overlay') {
    for (const dir of [paths.upper, paths.work]) makeOwn(dir, plan);
    replaceFile(note, layer);
    return {
      kind: 'overlay',
      layers: [layerAt(layer)],
      hidden: [],
      upper: hostPath(paths.upper),
      work: hostPath(paths.work),
    };
  }
  if (earlier === null) {
    const copied = await run(['cp', '-a', '--reflink=auto', '--', layer, paths.copy]);
    if (copied.exitCode !== 0) throw new AgsError('disk.full', `The data of ${one.service.name} could not be copied.`);
  }
  replaceFile(note, layer);
  return { kind: 'copy', directory: hostPath(paths.copy), writable: true };
}
