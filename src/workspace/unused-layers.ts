// workspace/unused-layers.ts: which layers nobody needs.
// Invariant: a layer that any run of any task names is needed, and so is every layer that a needed one stands on.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listLayers, type StoredLayer } from '../store/layers.ts';
import { taskPaths, tasksDir } from '../store/layout.ts';
import { stateFile } from '../store/service-files.ts';
import type { World } from '../run/host-context.ts';

export const UNUSED_MS = 14 * 86_400_000;
// A task that was given a layer a moment ago may not have written it down yet.
const LEAST_MS = 3_600_000;

/** `going`: tasks that are about to be removed, whose word does not count any more. */
export function unusedLayers(
  world: World,
  dir: string,
  ageMs: number,
  going: ReadonlySet<string> = new Set(),
): StoredLayer[] {
  const all = listLayers(dir);
  const runs = runFiles(world.stateDir, going);
  const latest = world.now().getTime() - Math.max(ageMs, LEAST_MS);
  const isNamed = ({ files }: StoredLayer): boolean => runs.some((text) => text.includes(JSON.stringify(files)));
  const needed = all.filter((layer) => layer.usedAtMs > latest || isNamed(layer));
  const kept = new Set(needed.flatMap(({ name, file }) => [name, ...file.layers]));
  return all.filter(({ name }) => !kept.has(name));
}

/** As texts: also a file that is damaged may name a layer that somebody wants to look through. */
function runFiles(stateDir: string, going: ReadonlySet<string>): string[] {
  return list(tasksDir(stateDir))
    .filter((id) => !going.has(id))
    .flatMap((id) => {
      const { run, checks, services, earlier } = taskPaths(stateDir, id);
      return [
        run,
        checks,
        stateFile({ services }),
        ...list(earlier).map((number) => join(earlier, number, 'run.json')),
      ].flatMap(read);
    });
}

function list(dir: string): string[] {
  return existsSync(dir) ? readdirSync(dir) : [];
}

function read(file: string): string[] {
  return existsSync(file) ? [readFileSync(file, 'utf8')] : [];
}
