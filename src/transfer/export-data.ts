// transfer/export-data.ts: exports the data of a task's services.
// Invariant: the data is hostile, because agents control what services write. A program of ours reads it in a throw-away sandbox that sees
// what a service would see, and only data that could be imported again leaves it.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AgsError } from '../protocol/errors.ts';
import { DATA_VERSION, EXPORT_LIMITS, type CarriedService } from '../protocol/export.ts';
import { hostPath, type WorkspaceMount } from '../protocol/spec.ts';
import { layerAt } from '../lib/files.ts';
import { visible } from '../lib/sanitize.ts';
import { readTree, TREE_TAR, TreeProblem, type TreeLimits } from '../lib/tree-archive.ts';
import { readableSize } from '../lib/units.ts';
import { PRESETS } from '../services/presets/presets.ts';
import { readServices, servicePlace } from '../store/service-files.ts';
import type { StoredTask } from '../store/tasks.ts';
import { inspectionsOver, type Inspect } from '../run/inspection.ts';
import type { HostContext } from '../run/host-context.ts';

/** The names of the task's services that have data. */
export function servicesWithData({ paths }: Pick<StoredTask, 'paths'>): string[] {
  return readServices(paths)
    .map(({ name }) => name)
    .filter((name) => mountOf(paths, name) !== null);
}

/** Exports one service after the other; `add` consumes the data and gets a description at its end. */
export async function exportData(
  context: HostContext,
  stored: StoredTask,
  given: { user: { uid: number; gid: number }; outDir: string },
  add: (service: string, content: AsyncIterable<Buffer>) => Promise<void>,
): Promise<CarriedService[]> {
  const done: CarriedService[] = [];
  let left: TreeLimits = { bytes: EXPORT_LIMITS.dataBytes, entries: EXPORT_LIMITS.dataEntries };
  for (const name of servicesWithData(stored)) {
    const ask = await inspectionsOver(context, {
      id: stored.task.id,
      backend: stored.run.backend,
      runDir: servicePlace(stored.paths, name).runDir,
      at: DATA,
      workspace: mountOf(stored.paths, name) as WorkspaceMount,
      upper: null,
      more: [],
      ...given,
    });
    const kind = readServices(stored.paths).find((one) => one.name === name)?.kind ?? 'command';
    const size = { bytes: 0, entries: 0 };
    await add(name, dataOut(ask, name, left, size));
    left = { bytes: left.bytes - size.bytes, entries: left.entries - size.entries };
    done.push({ name, kind, version: await versionOf(ask, kind), ...size });
  }
  return done;
}

const DATA = '/run/ags/data';

/** The mount that the service would have; null if it was never started. */
function mountOf(paths: StoredTask['paths'], name: string): WorkspaceMount | null {
  const place = servicePlace(paths, name);
  if (existsSync(place.copy)) return { kind: 'copy', directory: hostPath(place.copy), writable: false };
  if (!existsSync(place.upper)) return null;
  const layer = readFileSync(join(place.root, 'layer'), 'utf8');
  if (!existsSync(layer))
    throw new AgsError('path.not-found', `The layer below the data of ${name} is gone: ${layer}`, {
      hint: 'Export the task without the data of its services.',
    });
  return { kind: 'frozen-overlay', layers: [layerAt(layer)], hidden: [], upper: hostPath(place.upper) };
}

async function* dataOut(
  ask: Inspect,
  name: string,
  limits: TreeLimits,
  size: { bytes: number; entries: number },
): AsyncGenerator<Buffer> {
  const out = new PassThrough();
  const asked = ask({
    argv: ['sh', '-c', TREE_TAR],
    input: Buffer.alloc(0),
    consume: (answer) => pipeline(answer, out),
  });
  asked.catch((error: Error) => out.destroy(error));
  const reader = readTree(limits, { entry: () => undefined, content: () => undefined });
  try {
    for await (const chunk of out) {
      reader.push(chunk as Buffer);
      yield chunk as Buffer;
    }
    await asked;
    Object.assign(size, reader.end());
  } catch (error) {
    throw explain(name, error, limits) ?? error;
  } finally {
    out.destroy();
    await asked.catch(() => undefined);
  }
}

function explain(name: string, cause: unknown, { bytes, entries }: TreeLimits): AgsError | null {
  const isOurs = cause instanceof TreeProblem || (cause instanceof AgsError && cause.code === 'capture.refused');
  if (!isOurs) return null;
  return new AgsError('capture.refused', `The data of ${name} cannot be exported: ${visible(cause.message)}.`, {
    hint: `Files and directories can be, ${readableSize(bytes)} in ${entries} of them. Without it: no --data`,
    cause,
  });
}

/** Accepts only a number as the version: any other text from the data is dropped. */
async function versionOf(ask: Inspect, kind: string): Promise<string | null> {
  const script = PRESETS[kind as keyof typeof PRESETS]?.dataVersion ?? null;
  if (script === null) return null;
  const good = Array.from({ length: 256 }, (_, code) => code);
  const said = await ask({ argv: ['sh', '-c', script], input: Buffer.alloc(0), good, maxBytes: 4096 });
  const version = said.toString('latin1').trim();
  return DATA_VERSION.test(version) ? version : null;
}
