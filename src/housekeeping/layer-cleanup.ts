// housekeeping/layer-cleanup.ts: layers that nobody needs, and what makers of layers that were killed have left.
import { existsSync, lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { lockHolder } from '../lib/process/lock.ts';
import { discard, layersDir, lockLayers, unfinishedLayers } from '../store/layers.ts';
import type { CleanupItem } from './leftovers.ts';
import { sizeOf } from '../queries/list.ts';
import { unusedLayers } from '../workspace/unused-layers.ts';
import type { World } from '../run/host-context.ts';

/** Of all projects: those not used for this long that no task stands on. */
export async function layerItems(world: World, ageMs: number, going: ReadonlySet<string>): Promise<CleanupItem[]> {
  const all = layersDir(world.stateDir);
  const dirs = existsSync(all) ? readdirSync(all).map((name) => join(all, name)) : [];
  const items = await Promise.all(dirs.map((dir) => itemsOf(world, dir, ageMs, going)));
  return items.flat();
}

async function itemsOf(world: World, dir: string, ageMs: number, going: ReadonlySet<string>): Promise<CleanupItem[]> {
  const item = async (kind: 'layer' | 'directory' | 'lock', path: string, why: string, still: () => boolean) => ({
    kind,
    name: path,
    why,
    bytes: kind === 'lock' ? 0 : await sizeOf(path),
    losesWork: false,
    remove: async () => removeUnderLock(dir, path, still),
  });
  const unused = unusedLayers(world, dir, ageMs, going);
  const left = unfinishedLayers(dir);
  const still = (name: string) => () => unusedLayers(world, dir, ageMs).some((layer) => layer.name === name);
  return Promise.all([
    ...unused.map(({ name, root, file }) => item('layer', root, WHY[file.kind], still(name))),
    ...left.map((path) =>
      item('directory', path, 'a layer that was never finished', () => unfinishedLayers(dir).includes(path)),
    ),
    ...readdirSync(dir)
      .filter((name) => name.startsWith('lock') && lockHolder(join(dir, name)) === null)
      .map((name) => item('lock', join(dir, name), 'its holder is dead', () => lockHolder(join(dir, name)) === null)),
  ]);
}

const WHY = {
  base: 'a snapshot that no task stands on',
  setup: 'what setup commands made, and no task uses',
  data: 'what services were filled with, and no task uses',
} as const;

/** Somebody may have come back to it since it was looked at. */
function removeUnderLock(dir: string, path: string, still: () => boolean): boolean {
  const lock = lockLayers(dir);
  if (lock === null) return false;
  using _lock = lock;
  // The lock that is now ours needed nothing but to be taken.
  if (path === join(dir, 'lock')) return true;
  if (!still()) return false;
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true) discard(path);
  else rmSync(path, { force: true });
  return !existsSync(path);
}
