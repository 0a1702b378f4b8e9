// services/data.ts: seeds the data of a service once, in its own sandbox, and keeps it as a read-only layer. Every later task gets a
// copy-on-write view of that layer.
// Invariant: the layer gets its name only if every step succeeded and the service shut down cleanly.
import { createHash } from 'node:crypto';
import { mkdirSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError } from '../protocol/errors.ts';
import { removeTree, layerAt, replaceFile } from '../lib/files.ts';
import { tryLock } from '../lib/process/lock.ts';
import {
  beginLayer,
  finishLayer,
  projectLayers,
  readLayer,
  sweepUnfinished,
  touchLayer,
  type StoredLayer,
} from '../store/layers.ts';
import { taskPaths, type TaskPaths } from '../store/layout.ts';
import { openOutput } from '../run/output-reader.ts';
import type { PlannedService } from '../run/planned-services.ts';
import { type ServiceRoot } from './root.ts';
import { emptyData, runService, SEED_DIR, makeOwn } from './sandbox.ts';
import { readyScript, runScript, seedCommand, SEED_SCRIPT } from './scripts.ts';
import { readSeeds, type Seed, type SeedSource } from '../workspace/seed-files.ts';
import { harvest } from '../workspace/harvest.ts';
import type { HostContext } from '../run/host-context.ts';
import { hostPath, type WorkspaceMount } from '../protocol/spec.ts';
import { run } from '../lib/process/process.ts';

export interface DataWish {
  readonly task: string;
  readonly source: SeedSource;
  /** Called when no layer exists yet and seeding starts. */
  onSeeding(): void;
  readonly signal: AbortSignal;
}

// Raise this when the same seed would produce a different layer.
const FORMAT = 1;
const WAIT_MS = 50;
const SEED_SECONDS = 1800;

/** null: the service starts with empty data. */
export async function ensureData(
  context: HostContext,
  on: ServiceRoot,
  one: PlannedService,
  want: DataWish,
): Promise<StoredLayer | null> {
  const { plan } = on;
  const { preset, service } = one;
  if (preset?.init == null && preset?.prepare == null && service.seed.length === 0) return null;
  const seeds = await readSeeds(context, plan, one, want.source);
  const dir = projectLayers(context.stateDir, plan.project.root);
  const name = `data-${keyOf(on, one, seeds)}`;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  for (;;) {
    want.signal.throwIfAborted();
    const known = readLayer(dir, name);
    if (known !== null) {
      touchLayer(known, context.now());
      return known;
    }
    const lock = tryLock(join(dir, `lock-${name}`));
    if (lock !== null) {
      using _lock = lock;
      return readLayer(dir, name) ?? (await make(context, on, one, seeds, want, { dir, name }));
    }
    await sleep(WAIT_MS, undefined, { signal: want.signal });
  }
}

function keyOf({ plan, image }: ServiceRoot, one: PlannedService, seeds: readonly Seed[]): string {
  const { preset, to } = one;
  const parts = [
    FORMAT,
    [preset?.init, runScript(one), readyScript(one), preset?.prepare],
    'stamps' in one.programs ? one.programs.stamps : [],
    [to.port, to.user, to.password, to.database],
    seeds.map(({ path, content }) => [seedCommand(one, path), createHash('sha256').update(content).digest('hex')]),
    plan.user.uid,
    plan.host.arch,
    ...(image === null ? [] : [image.id, one.service.environment]),
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}

async function make(
  context: HostContext,
  on: ServiceRoot,
  one: PlannedService,
  seeds: readonly Seed[],
  want: DataWish,
  at: { dir: string; name: string },
): Promise<StoredLayer> {
  want.onSeeding();
  sweepUnfinished(at.dir);
  const place = beginLayer(at.dir);
  try {
    const paths = taskPaths(place.root, 'data');
    await fill(context, on, one, seeds, want, paths);
    const found = harvest({
      from: paths.copy,
      base: [],
      to: place.files,
      owner: context.uid === 0 ? on.plan.user : null,
    });
    removeTree(join(place.root, 'tasks'));
    return finishLayer(at.dir, place.root, at.name, {
      kind: 'data',
      commit: '',
      layers: [at.name],
      entries: 0,
      changed: found.roots.length,
      ...found,
    });
  } catch (error) {
    removeTree(place.root);
    throw error;
  }
}

async function fill(
  context: HostContext,
  on: ServiceRoot,
  one: PlannedService,
  seeds: readonly Seed[],
  want: DataWish,
  paths: ReturnType<typeof taskPaths>,
): Promise<void> {
  const { preset, service } = one;
  const data = emptyData(paths, on.plan);
  const files = seeds.map(({ path, content }, i) => ({
    to: `${SEED_DIR}/${i}/${path.split('/').at(-1)}`,
    content: content.toString('latin1'),
    binary: true,
  }));
  using printed = openOutput(join(paths.root, 'service.log'), () => undefined);
  const reading: Promise<void>[] = [];
  const over = new AbortController();
  const outcome = await runService(context, on, one, {
    task: want.task,
    group: `${want.task}-seed-${service.name}`,
    paths,
    data,
    files,
    command: [
      'sh',
      '-c',
      SEED_SCRIPT,
      'sh',
      preset?.init ?? '',
      runScript(one),
      readyScript(one),
      preset?.prepare ?? '',
      preset?.stop ?? 'TERM',
      preset === null ? 'no' : 'yes',
      ...seeds.flatMap(({ path }, i) => [seedCommand(one, path), files[i]?.to ?? '']),
    ],
    wallSeconds: SEED_SECONDS,
    onStart(sandbox) {
      for (const stream of [sandbox.stdout, sandbox.stderr])
        if (stream !== null)
          reading.push(
            (async () => {
              for await (const chunk of stream) printed.bytes(chunk as Buffer);
            })(),
          );
      for (const one of reading) one.catch(() => sandbox.kill());
      if (want.signal.aborted) sandbox.kill();
      want.signal.addEventListener('abort', () => sandbox.kill(), { signal: over.signal });
    },
  }).finally(() => over.abort());
  await Promise.all(reading);
  printed.end();
  want.signal.throwIfAborted();
  if (outcome.exitCode === 0 && outcome.ended === null) return;
  const lines = printed.tail();
  throw new AgsError(
    'service.failed',
    `The service ${service.name} could not be filled: ${outcome.ended ?? lastWord(lines) ?? `it ended with ${outcome.exitCode}`}`,
    { hint: `Fix it (${service.origin}); nothing was kept, and the next start tries again.`, details: { lines } },
  );
}

/** The last line that one of our own scripts printed. */
export function lastWord(lines: readonly string[]): string | null {
  return lines.findLast((line) => line.startsWith('ags: '))?.slice('ags: '.length) ?? null;
}

/** The data directory of a service in one run: a copy-on-write view of its seeded layer, or a copy. A run that continues gets its data as it left it, on the same layer as before. */
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
