// sandbox/container/work-directories.ts: the work directories of overlays that an engine mounted for an ordinary user. The engine fills
// them as root, so often only the engine can empty them; no sandbox ever sees them.
// Invariant: they are separate from the runs, so leftovers in one do not keep a run from being removed.
import { existsSync, lstatSync, readlinkSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { bindArgs, type RootImageEntry } from './mounts.ts';
import { common } from './container-args.ts';
import { ofTheDead } from './leftovers.ts';
import { ensureRootImage, rootImageName } from './root-image.ts';
import { askEngine, type Engine } from '../engine/engine.ts';
import { ENGINE_KINDS } from '../engine/engine-kinds.ts';
import { SYSTEM_DIRS } from '../spec/machine.ts';
import { ownerText } from '../engine/owner.ts';

/** Directories whose process has ended. */
export function staleWork(workRoot: string): readonly string[] {
  return existsSync(workRoot) ? ofTheDead(workRoot) : [];
}

/** False: something is left. */
export async function removeWork(engine: Engine, workRoot: string, names: readonly string[]): Promise<boolean> {
  const stubborn = names.filter((name) => !removeEmpty(join(workRoot, name)));
  if (stubborn.length === 0) return true;
  const kind = ENGINE_KINDS[engine.name];
  const user = { uid: 0, gid: 0 };
  const system = SYSTEM_DIRS.filter((path) => existsSync(path));
  const isLink = (path: string): boolean => lstatSync(path).isSymbolicLink();
  const links = system.filter(isLink).map((path): RootImageEntry => ({ path, target: readlinkSync(path) }));
  await ensureRootImage(engine, links, user, workRoot);
  await askEngine(engine, [
    'run',
    ...common(
      { run: 'tidy', owner: ownerText(), kind, rootless: engine.rootless },
      `ags-tidy-${process.pid}-${Date.now().toString(36)}`,
    ),
    '--network',
    'none',
    '--user',
    '0:0',
    '--cap-add',
    'DAC_OVERRIDE',
    ...system.filter((path) => !isLink(path)).flatMap((path) => bindArgs(kind, path, path, false)),
    ...bindArgs(kind, workRoot, '/work', true),
    '--entrypoint',
    '/usr/bin/rm',
    rootImageName(links, user),
    '-rf',
    '--',
    ...stubborn.map((name) => `/work/${name}`),
  ]);
  return stubborn.every((name) => !existsSync(join(workRoot, name)));
}

/** The owner of the parent can remove an empty directory. */
function removeEmpty(path: string): boolean {
  try {
    for (const dir of [join(path, 'work'), path]) if (existsSync(dir)) rmdirSync(dir);
    return true;
  } catch {
    return false;
  }
}
