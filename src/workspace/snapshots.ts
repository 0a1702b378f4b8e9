// workspace/snapshots.ts: finds the read-only layers of a commit, or makes them from the snapshot that differs least.
// Invariant: a known snapshot costs a few file-system calls, whatever its size; a new one costs as much as its changes.
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { removeTree } from '../lib/files.ts';
import { shortHash } from '../lib/short-hash.ts';
import type { Repository } from '../git/repository.ts';
import {
  isUsersOwn,
  openLayerGit,
  setAttributes,
  storageSettings,
  usersTips,
  type LayerGit,
} from '../git/staging/layer-git.ts';
import { countEntries, findDelta, writeDelta, writeWhole, type Delta } from '../git/staging/snapshot.ts';
import { ensureWhiteout } from '../sandbox/checks/host.ts';
import {
  beginLayer,
  discardLater,
  finishLayer,
  listLayers,
  lockLayers,
  projectLayers,
  readLayer,
  sweepUnfinished,
  touchLayer,
  type StoredLayer,
} from '../store/layers.ts';
import { UNUSED_MS, unusedLayers } from './unused-layers.ts';
import type { HostContext } from '../run/host-context.ts';

export interface Snapshot {
  readonly layer: StoredLayer;
  /** Directories, topmost first. */
  readonly files: readonly string[];
}

export interface SnapshotInput {
  readonly context: HostContext;
  readonly repository: Repository;
  /** Directories outside of the project whose git objects may be used. */
  readonly shown: readonly string[];
  readonly commit: string;
  readonly onStep: (text: string) => void;
  readonly signal: AbortSignal;
}

// Each layer slows down the lookup of a missing file; an overlay accepts 500.
const MOST_DELTAS = 16;
// How many recently used snapshots are compared.
const CANDIDATES = 3;
const MOST_CHANGES = 50_000;

export async function ensureSnapshot(input: SnapshotInput): Promise<Snapshot> {
  const { context, repository, commit, signal } = input;
  if (!/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(commit)) throw new Error(`not the full name of a commit: ${commit}`);
  const dir = projectLayers(context.stateDir, repository.root);
  for (let waited = false; ; waited = true) {
    const known = findKnown(input, dir);
    if (known !== null) return known;
    signal.throwIfAborted();
    const lock = lockLayers(dir);
    if (lock !== null) {
      using _lock = lock;
      return findKnown(input, dir) ?? (await make(input, dir));
    }
    if (!waited) input.onStep(`Waiting for another task that is making the snapshot of ${commit.slice(0, 7)}`);
    await sleep(WAIT_MS, undefined, { signal });
  }
}

const WAIT_MS = 25;

export function layerGitOf(input: Pick<SnapshotInput, 'context' | 'repository' | 'shown'>): LayerGit {
  const dir = projectLayers(input.context.stateDir, input.repository.root);
  return openLayerGit(join(dir, 'git'), input.repository, input.shown);
}

/** An agent's commit is checked out with other attributes, and a snapshot of the user's commit is never based on it. */
function snapshotName(repository: Repository, commit: string, own: boolean): string {
  return `${own ? 'base' : 'given'}-${commit}-${shortHash(JSON.stringify([repository.root, storageSettings(repository)]))}`;
}

/** Prefers the snapshot of a user's commit. An agent's snapshot of the same commit does not count once the commit is the tip of a user's branch. */
function findKnown({ context, repository, commit }: SnapshotInput, dir: string): Snapshot | null {
  const find = (own: boolean): Snapshot | null => findSnapshot(context, dir, snapshotName(repository, commit, own));
  return find(true) ?? (usersTips(repository).includes(commit) ? null : find(false));
}

const isOwn = (name: string): boolean => name.startsWith('base-');

function findSnapshot(context: HostContext, dir: string, name: string): Snapshot | null {
  const layer = readLayer(dir, name);
  if (layer === null) return null;
  const chain = layer.file.layers.map((one) => readLayer(dir, one));
  if (!chain.every((one) => one !== null)) return null;
  // Before the caller uses the files: the removal of unused layers checks this time.
  for (const one of [layer, ...chain]) touchLayer(one, context.now());
  return { layer, files: chain.map(({ files }) => files) };
}

async function make(input: SnapshotInput, dir: string): Promise<Snapshot> {
  const { context, repository, commit } = input;
  sweepUnfinished(dir);
  for (const old of unusedLayers(context, dir, UNUSED_MS)) discardLater(old.root);
  const git = layerGitOf(input);
  const own = await isUsersOwn(git, repository, commit);
  const name = snapshotName(repository, commit, own);
  setAttributes(git.directory, own ? 'trusted' : 'changed');
  const unfinished = beginLayer(dir);
  try {
    const best = await closest(git, dir, name, commit);
    const whiteout = best === null || best.delta.whiteouts.length === 0 ? '' : await ensureWhiteout(unfinished.root);
    const possible = whiteout === '' || lstatSync(whiteout, { throwIfNoEntry: false })?.isCharacterDevice() === true;
    input.signal.throwIfAborted();
    const described = { kind: 'base', commit, roots: [], shared: [] } as const;
    if (best === null || !possible) {
      input.onStep(`Snapshot of ${commit.slice(0, 7)}: all files`);
      await writeWhole(git, commit, unfinished);
      const entries = countEntries(unfinished.index);
      finishLayer(dir, unfinished.root, name, { ...described, layers: [name], entries, changed: entries });
    } else {
      const changed = best.delta.gone.length + best.delta.come.length;
      input.onStep(`Snapshot of ${commit.slice(0, 7)}: ${changed} ${changed === 1 ? 'file' : 'files'} changed`);
      const { from } = best;
      await writeDelta(git, commit, best.delta, unfinished, { index: from.index, whiteout });
      const layers = changed === 0 ? from.file.layers : [name, ...from.file.layers];
      finishLayer(dir, unfinished.root, name, {
        ...described,
        layers,
        entries: countEntries(unfinished.index),
        changed,
      });
    }
  } catch (error) {
    removeTree(unfinished.root);
    throw error;
  }
  const made = findSnapshot(context, dir, name);
  if (made === null) throw new Error(`the snapshot ${name} is not there after it was made`);
  return made;
}

/** Compares recently used snapshots and the latest full one. null: too much changed, or there is no snapshot to start from. */
async function closest(
  git: LayerGit,
  dir: string,
  name: string,
  commit: string,
): Promise<{ from: StoredLayer; delta: Delta } | null> {
  const settings = name.split('-').at(-1) ?? '';
  const known = listLayers(dir)
    .filter((layer) => layer.file.kind === 'base' && layer.name.endsWith(`-${settings}`) && isWhole(dir, layer))
    .filter((layer) => isOwn(layer.name) || !isOwn(name))
    .toSorted((a, b) => b.usedAtMs - a.usedAtMs || b.file.layers.length - a.file.layers.length);
  const wholes = known.filter(({ file }) => file.layers.length === 1);
  const short = known.filter(({ file }) => file.layers.length <= MOST_DELTAS);
  const candidates = new Set([...short.slice(0, CANDIDATES), ...wholes.slice(0, 1)]);
  let best: { from: StoredLayer; delta: Delta } | null = null;
  for (const from of candidates) {
    const most = Math.min(MOST_CHANGES, best === null ? Math.max(100, from.file.entries / 3) : size(best.delta));
    const delta = await findDelta(git, from.file.commit, commit, most);
    if (delta !== null && (best === null || isBetter({ from, delta }, best))) best = { from, delta };
  }
  return best;
}

function isBetter(one: { from: StoredLayer; delta: Delta }, other: { from: StoredLayer; delta: Delta }): boolean {
  const fewer = size(other.delta) - size(one.delta);
  return fewer > 0 || (fewer === 0 && one.from.file.layers.length < other.from.file.layers.length);
}

function size(delta: Delta): number {
  return delta.gone.length + delta.come.length;
}

/** Every layer below it exists. */
function isWhole(dir: string, layer: StoredLayer): boolean {
  return layer.file.layers.every((name) => readLayer(dir, name) !== null);
}
