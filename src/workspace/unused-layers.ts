// workspace/unused-layers.ts: finds unused layers.
// Invariant: a layer is in use if any run of any task names it, or if a layer in use is based on it.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listLayers, type StoredLayer } from '../store/layers.ts';
import { taskPaths, tasksDir } from '../store/layout.ts';
import { stateFile } from '../store/service-files.ts';
import type { HostContext } from '../run/host-context.ts';

export const UNUSED_MS = 14 * 86_400_000;
// A task that just got a layer may not have recorded it yet.
const LEAST_MS = 3_600_000;

/** `going`: tasks that are about to be removed; the layers they name do not count as in use. */
export function unusedLayers(
  context: HostContext,
  dir: string,
  ageMs: number,
  going: ReadonlySet<string> = new Set(),
): StoredLayer[] {
  const all = listLayers(dir);
  const runs = runFiles(context.stateDir, going);
  const latest = context.now().getTime() - Math.max(ageMs, LEAST_MS);
  const isNamed = ({ files }: StoredLayer): boolean => runs.some((text) => text.includes(JSON.stringify(files)));
  const needed = all.filter((layer) => layer.usedAtMs > latest || isNamed(layer));
  const kept = new Set(needed.flatMap(({ name, file }) => [name, ...file.layers]));
  return all.filter(({ name }) => !kept.has(name));
}

/** Reads the files as text, because a damaged file may still name a layer with work that the user wants to inspect. */
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
