// housekeeping/layer-cleanup.ts: finds unused and unfinished layers for `ags cleanup`.
import { existsSync, lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { lockHolder } from '../lib/process/lock.ts';
import { discard, layersDir, lockLayers, unfinishedLayers } from '../store/layers.ts';
import type { CleanupItem } from './leftovers.ts';
import { sizeOf } from '../queries/list.ts';
import { unusedLayers } from '../workspace/unused-layers.ts';
import type { HostContext } from '../run/host-context.ts';

/** Layers of all projects that were not used for this long and that no task uses. */
export async function layerItems(
  context: HostContext,
  ageMs: number,
  going: ReadonlySet<string>,
): Promise<CleanupItem[]> {
  const all = layersDir(context.stateDir);
  const dirs = existsSync(all) ? readdirSync(all).map((name) => join(all, name)) : [];
  const items = await Promise.all(dirs.map((dir) => itemsOf(context, dir, ageMs, going)));
  return items.flat();
}

async function itemsOf(
  context: HostContext,
  dir: string,
  ageMs: number,
  going: ReadonlySet<string>,
): Promise<CleanupItem[]> {
  const item = async (kind: 'layer' | 'directory' | 'lock', path: string, why: string, still: () => boolean) => ({
    kind,
    name: path,
    why,
    bytes: kind === 'lock' ? 0 : await sizeOf(path),
    losesWork: false,
    remove: async () => removeUnderLock(dir, path, still),
  });
  const unused = unusedLayers(context, dir, ageMs, going);
  const left = unfinishedLayers(dir);
  const still = (name: string) => () => unusedLayers(context, dir, ageMs).some((layer) => layer.name === name);
  return Promise.all([
    ...unused.map(({ name, root, file }) => item('layer', root, WHY[file.kind], still(name))),
    ...left.map((path) => item('directory', path, 'unfinished layer', () => unfinishedLayers(dir).includes(path))),
    ...readdirSync(dir)
      .filter((name) => name.startsWith('lock') && lockHolder(join(dir, name)) === null)
      .map((name) =>
        item('lock', join(dir, name), 'the process that held it has ended', () => lockHolder(join(dir, name)) === null),
      ),
  ]);
}

const WHY = {
  base: 'snapshot that no task uses',
  setup: 'output of setup commands that no task uses',
  data: 'seeded service data that no task uses',
} as const;

/** Checks again under the lock: a task may have started to use it since the plan was made. */
function removeUnderLock(dir: string, path: string, still: () => boolean): boolean {
  const lock = lockLayers(dir);
  if (lock === null) return false;
  using _lock = lock;
  // Taking over the stale lock and releasing it removes it.
  if (path === join(dir, 'lock')) return true;
  if (!still()) return false;
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true) discard(path);
  else rmSync(path, { force: true });
  return !existsSync(path);
}
