// housekeeping/engine-leftovers.ts: for `ags cleanup`: what is left of sandboxes that were containers.
import { join } from 'node:path';
import { taskPaths } from '../store/layout.ts';
import type { CleanupItem } from './leftovers.ts';
import { engineWorkDirs } from '../run/open-backend.ts';
import type { World } from '../run/host-context.ts';

export async function engineItems(world: World): Promise<CleanupItem[]> {
  const { findEngine } = await import('../sandbox/engine/find-engine.ts');
  const { ENGINE_NAMES } = await import('../sandbox/engine/engine-kinds.ts');
  const engines = ENGINE_NAMES.flatMap((name) => findEngine(name, world, false) ?? []);
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
      : engineWorkDirs(world).flatMap((dir) => staleWork(dir).map((name) => ({ dir, name, daemon })));
  const stages = world.uid === 0 ? staleStages() : [];
  return [
    ...(await farItems(world)),
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

/** On an engine on another machine: what dead processes with this state directory have left there. What a task in it still waits for stays. */
async function farItems(world: World): Promise<CleanupItem[]> {
  const { findAnyEngine } = await import('../sandbox/engine/find-engine.ts');
  const engine = findAnyEngine('docker', world, false);
  if (engine === null || engine.far === null) return [];
  const { farLeftovers, readMemo, removeVolume } = await import('../sandbox/remote/volume.ts');
  const { removeContainer } = await import('../sandbox/container/leftovers.ts');
  const waited = (run: string): string | undefined =>
    run.includes('/') ? undefined : readMemo(taskPaths(world.stateDir, run).runDir)?.place.volume;
  return (await farLeftovers(engine, world.stateDir))
    .filter(({ kind, id, run }) => kind === 'container' || waited(run) !== id)
    .map(({ kind, id, run }): CleanupItem => ({
      kind: kind === 'container' ? 'container' : 'directory',
      name: kind === 'container' ? run : `${id} at ${engine.far}`,
      why: kind === 'container' ? 'its ags was killed' : 'a volume whose task is gone, or has what was in it',
      bytes: 0,
      losesWork: false,
      remove: () => (kind === 'container' ? removeContainer(engine, id) : removeVolume(engine, id)),
    }));
}
