// merge/check-layers.ts: what checks stand on: exactly the tree that a branch would have after a merge, and what the project's setup commands
// add to it.
// Invariant: what an agent wrote lies in a directory of these checks alone. Setup layers are shared by all tasks: one is used if nothing
// that decides it was changed; otherwise the commands run here, over the merged tree, and what they leave goes with the checks.
import { lstatSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createCheckGit, packCommit } from '../git/staging/check-git.ts';
import { setAttributes, type LayerGit } from '../git/staging/layer-git.ts';
import { commitHas, findDelta, listIndex, writeDelta, writeWhole, type Delta } from '../git/staging/snapshot.ts';
import { ensureWhiteout } from '../sandbox/checks/host.ts';
import type { LayerFile } from '../store/layers.ts';
import {
  excludeLine,
  hiddenAmong,
  prepareSnapshot,
  type LayersWish,
  type PreparedLayers,
} from '../workspace/prepare-snapshot.ts';
import type { MergedBranch } from './merge-tree.ts';
import type { RunPlan } from '../run/plan-run.ts';
import { ensureSetup } from '../setup/setup-layer.ts';
import { findInputs, inputsAmong } from '../setup/setup-key.ts';
import type { Snapshot } from '../workspace/snapshots.ts';
import type { World } from '../run/host-context.ts';

export interface CheckLayers extends PreparedLayers {
  /** private: the commands have to be run over these layers first. */
  readonly setup: 'none' | 'shared' | 'private';
}

/** All that is made is in `place`, which is empty. `commit` has the merged tree, and is in `staging`. */
export async function prepareCheckLayers(
  world: World,
  plan: RunPlan,
  merged: MergedBranch & { readonly commit: string; readonly staging: string },
  place: { readonly root: string; readonly files: string; readonly index: string },
  wish: Omit<LayersWish, 'commit'>,
): Promise<CheckLayers> {
  const want = { ...wish, commit: merged.from };
  const { input, base, prepared } = await prepareSnapshot(world, plan, want);
  const git = createCheckGit(join(place.root, 'check.git'), merged.staging, merged.repository);
  const below = await writeMerged(git, base, merged, place);
  wish.signal.throwIfAborted();
  const entries = await listIndex(git, place.index);
  const packs = join(place.root, 'packs');
  mkdirSync(packs, { mode: 0o700 });
  const files: PreparedLayers = {
    commit: merged.commit,
    branch: merged.ref,
    packs: merged.commit === merged.from ? [] : [await packCommit(merged.staging, merged.commit, merged.from, packs)],
    layers: [place.files, ...below],
    index: place.index,
    hidden: hiddenAmong(entries, plan.config),
    exclude: [],
  };
  const { setup } = plan.config;
  if (setup.run.length === 0) return { ...files, setup: 'none' };
  const same =
    JSON.stringify(inputsAmong(entries, setup)) === JSON.stringify(await findInputs(input, base, plan.config));
  if (!same) return { ...files, setup: 'private' };
  const layer = await ensureSetup(input, plan, base, prepared, want);
  if (layer === null || !(await fits(git, merged.tree, layer.file))) return { ...files, setup: 'private' };
  return {
    ...files,
    layers: [place.files, layer.files, ...below],
    exclude: layer.file.roots.map(excludeLine),
    setup: 'shared',
  };
}

/** Into `place`: what differs from the snapshot, or all of it. Returns the layers below. */
async function writeMerged(
  git: LayerGit,
  base: Snapshot,
  { from, tree }: MergedBranch,
  place: { readonly root: string; readonly files: string; readonly index: string },
): Promise<readonly string[]> {
  const delta = await findDelta(git, from, tree, Number.POSITIVE_INFINITY);
  const whiteout = delta === null ? null : await whiteoutFor(delta, place.root);
  if (delta === null || whiteout === null) {
    setAttributes(git.directory, 'changed');
    await writeWhole(git, tree, place);
    return [];
  }
  await writeDelta(git, tree, delta, place, { index: base.layer.index, whiteout });
  return base.files;
}

/** null: none can be made here. */
async function whiteoutFor({ whiteouts }: Delta, directory: string): Promise<string | null> {
  if (whiteouts.length === 0) return '';
  const path = await ensureWhiteout(directory);
  return lstatSync(path, { throwIfNoEntry: false })?.isCharacterDevice() === true ? path : null;
}

/** The merged tree has nothing where the layer lies, and every directory that the two share. */
async function fits(git: LayerGit, tree: string, { roots, shared }: LayerFile): Promise<boolean> {
  const has = await commitHas(git, tree, [...roots, ...shared]);
  return !roots.some((path) => has.has(path)) && shared.every((path) => has.get(path) === 'tree');
}
