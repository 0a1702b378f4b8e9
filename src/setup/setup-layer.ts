// setup/setup-layer.ts: the setup layer of a project: the files that its setup commands add to a commit, made once for all later tasks.
// Invariant: a layer gets its name only after every command succeeded, and it hides no file of the commit.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createHash } from 'node:crypto';
import { realpathSync, statSync, type Stats } from 'node:fs';
import { removeTree } from '../lib/files.ts';
import { tryLock } from '../lib/process/lock.ts';
import { commitHas, listIndex, type IndexEntry } from '../git/staging/snapshot.ts';
import {
  beginLayer,
  finishLayer,
  projectLayers,
  readLayer,
  sweepUnfinished,
  touchLayer,
  type StoredLayer,
} from '../store/layers.ts';
import type { LayersWish, PreparedLayers } from '../workspace/prepare-snapshot.ts';
import type { RunPlan } from '../run/run-plan.ts';
import { remembered } from '../workspace/snapshot-facts.ts';
import { layerGitOf, type Snapshot, type SnapshotInput } from '../workspace/snapshots.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { compilePatterns } from '../config/patterns.ts';
import { SETUP_INPUTS, SETUP_TOOLS } from '../config/setup-inputs.ts';

const WAIT_MS = 100;

/** null: the project has no setup commands. */
export async function ensureSetup(
  input: SnapshotInput,
  plan: RunPlan,
  base: Snapshot,
  prepared: PreparedLayers,
  want: LayersWish,
): Promise<StoredLayer | null> {
  if (plan.config.setup.run.length === 0) return null;
  const dir = projectLayers(input.context.stateDir, input.repository.root);
  const key = await setupKey(input, base, plan);
  // The second name is for a commit that has its own files at paths of the first layer.
  const names = [`setup-${key}`, `setup-${key}-${input.commit}`];
  for (let waited = false; ; waited = true) {
    const known = await find(input, base, dir, names);
    if (known.layer !== null) return known.layer;
    want.signal.throwIfAborted();
    const lock = tryLock(join(dir, `lock-${known.free}`));
    if (lock !== null) {
      using _lock = lock;
      const { layer, free } = await find(input, base, dir, names);
      if (layer !== null) return layer;
      if (free === known.free) return await make(input, plan, prepared, want, { dir, name: free });
      continue;
    }
    if (!waited) want.onStep({ kind: 'setup', text: 'Waiting for the setup that another task is running' });
    await sleep(WAIT_MS, undefined, { signal: want.signal });
  }
}

async function find(
  input: SnapshotInput,
  base: Snapshot,
  dir: string,
  names: readonly string[],
): Promise<{ layer: StoredLayer | null; free: string }> {
  let free = names[0] ?? '';
  for (const name of names) {
    free = name;
    const layer = readLayer(dir, name);
    if (layer === null) break;
    if (!(await fits(input, base, layer))) continue;
    touchLayer(layer, input.context.now());
    return { layer, free };
  }
  return { layer: null, free };
}

/** False if this commit has files at paths where setup, run for another commit, put its own: the commit's files must stay visible. */
function fits(input: SnapshotInput, base: Snapshot, { name, file }: StoredLayer): Promise<boolean> {
  return remembered(base, 'fits', [name, file.roots, file.shared], async () => {
    const has = await commitHas(layerGitOf(input), input.commit, [...file.roots, ...file.shared]);
    return (
      !file.roots.some((path) => has.has(path)) &&
      file.shared.every((path) => ['tree', 'commit', undefined].includes(has.get(path)))
    );
  });
}

async function make(
  { context, commit }: SnapshotInput,
  plan: RunPlan,
  prepared: PreparedLayers,
  want: LayersWish,
  at: { dir: string; name: string },
): Promise<StoredLayer> {
  sweepUnfinished(at.dir);
  const unfinished = beginLayer(at.dir);
  try {
    const [{ runSetup }, { harvest }] = await Promise.all([
      import('./setup-run.ts'),
      import('../workspace/harvest.ts'),
    ]);
    const paths = await runSetup(context, plan, prepared, unfinished.root, want);
    const found = harvest({
      from: plan.workspace === 'overlay' ? paths.upper : paths.copy,
      base: prepared.layers,
      to: unfinished.files,
      owner: context.uid === 0 ? plan.user : null,
    });
    removeTree(join(unfinished.root, 'tasks'));
    return finishLayer(at.dir, unfinished.root, at.name, {
      kind: 'setup',
      commit,
      layers: [at.name],
      entries: 0,
      changed: found.roots.length,
      ...found,
    });
  } catch (error) {
    removeTree(unfinished.root);
    throw error;
  }
}

// Raise it when the same commands would produce a different layer.
const FORMAT = 1;

async function setupKey(input: SnapshotInput, base: Snapshot, plan: RunPlan): Promise<string> {
  const { config } = plan;
  const inputs = await findInputs(input, base, config);
  const parts = [
    FORMAT,
    config.setup.run,
    inputs,
    config.envSet,
    plan.user.uid,
    plan.project.root,
    plan.host.arch,
    plan.image === null ? toolStamps(input.context.env['PATH'] ?? '') : plan.image.id,
  ];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}

/** Scans all paths of the commit, once for each commit. */
export function findInputs(
  input: SnapshotInput,
  base: Snapshot,
  { setup }: Pick<EffectiveConfig, 'setup'>,
): Promise<readonly string[]> {
  const patterns = setup.inputs ?? SETUP_INPUTS;
  return remembered(base, 'inputs', patterns, async () =>
    inputsAmong(await listIndex(layerGitOf(input), base.layer.index), setup),
  );
}

export function inputsAmong(entries: readonly IndexEntry[], setup: EffectiveConfig['setup']): readonly string[] {
  const matches = compilePatterns(setup.inputs ?? SETUP_INPUTS);
  const isInput = ({ path }: IndexEntry): boolean =>
    matches(path, false) || (setup.inputs !== null && parents(path).some((dir) => matches(dir, true)));
  return entries.filter(isInput).map(({ mode, oid, path }) => `${mode} ${oid} ${path}`);
}

function parents(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, i) => names.slice(0, i + 1).join('/'));
}

/** The installed tools are part of the key: another version of Node, for example, needs other native modules. */
function toolStamps(path: string): string[] {
  const dirs = path.split(':').filter((dir) => dir.startsWith('/'));
  return SETUP_TOOLS.flatMap((tool) => {
    for (const dir of dirs) {
      const file = join(dir, tool);
      const stat = statOf(file);
      if (stat?.isFile() === true) return [`${realpathSync(file)} ${stat.size} ${stat.mtimeMs}`];
    }
    return [];
  });
}

/** null: there is none, or this user may not look there, such as in root's directories after "su". */
function statOf(file: string): Stats | null {
  try {
    return statSync(file);
  } catch {
    return null;
  }
}
