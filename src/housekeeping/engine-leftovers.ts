// housekeeping/engine-leftovers.ts: finds containers, work directories and mounts of killed container sandboxes for `ags cleanup`.
import { join } from 'node:path';
import { taskPaths } from '../store/layout.ts';
import type { CleanupItem } from './leftovers.ts';
import { engineWorkDirs } from '../run/open-backend.ts';
import type { HostContext } from '../run/host-context.ts';

export async function engineItems(context: HostContext): Promise<CleanupItem[]> {
  const { findEngine } = await import('../sandbox/engine/find-engine.ts');
  const { ENGINE_NAMES } = await import('../sandbox/engine/engine-kinds.ts');
  const engines = ENGINE_NAMES.flatMap((name) => findEngine(name, context, false) ?? []);
  const { removeContainer, removeStage, staleContainers, staleStages } =
    await import('../sandbox/container/leftovers.ts');
  const base = { bytes: 0, losesWork: false } as const;
  const containers = await Promise.all(
    engines.map(async (engine) => (await staleContainers(engine)).map((container) => ({ ...container, engine }))),
  );
  const { removeWork, staleWork } = await import('../sandbox/container/work-directories.ts');
  const daemon = engines.find(({ socket }) => socket !== null);
  const works =
    daemon === undefined
      ? []
      : engineWorkDirs(context).flatMap((dir) => staleWork(dir).map((name) => ({ dir, name, daemon })));
  const stages = context.uid === 0 ? staleStages() : [];
  return [
    ...(await remoteItems(context)),
    ...containers.flat().map(({ id, run, engine }): CleanupItem => ({
      ...base,
      kind: 'container',
      name: run,
      why: 'its ags was killed',
      remove: () => removeContainer(engine, id),
    })),
    ...works.map(({ dir, name, daemon: engine }): CleanupItem => ({
      ...base,
      kind: 'directory',
      name: join(dir, name),
      why: 'work directory of a container whose ags was killed',
      remove: () => removeWork(engine, dir, [name]),
    })),
    ...stages.map((path): CleanupItem => ({
      ...base,
      kind: 'directory',
      name: path,
      why: 'mounted for a container whose ags was killed',
      remove: () => removeStage(path),
    })),
  ];
}

/** Leftovers of dead processes with this state directory on a remote engine. A volume that a task still needs stays. */
async function remoteItems(context: HostContext): Promise<CleanupItem[]> {
  const { findAnyEngine } = await import('../sandbox/engine/find-engine.ts');
  const engine = findAnyEngine('docker', context, false);
  if (engine === null || engine.far === null) return [];
  const { remoteLeftovers, readMemo, removeVolume } = await import('../sandbox/remote/volume.ts');
  const { removeContainer } = await import('../sandbox/container/leftovers.ts');
  const neededVolume = (run: string): string | undefined =>
    run.includes('/') ? undefined : readMemo(taskPaths(context.stateDir, run).runDir)?.place.volume;
  return (await remoteLeftovers(engine, context.stateDir))
    .filter(({ kind, id, run }) => kind === 'container' || neededVolume(run) !== id)
    .map(({ kind, id, run }): CleanupItem => ({
      kind: kind === 'container' ? 'container' : 'directory',
      name: kind === 'container' ? run : `${id} at ${engine.far}`,
      why: kind === 'container' ? 'its ags was killed' : 'volume of a removed task, or of one whose files were fetched',
      bytes: 0,
      losesWork: false,
      remove: () => (kind === 'container' ? removeContainer(engine, id) : removeVolume(engine, id)),
    }));
}
