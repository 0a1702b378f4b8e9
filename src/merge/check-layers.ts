// merge/check-layers.ts: prepares the layers that checks run over: exactly the tree that a branch would have after a merge, and the results
// of the project's setup commands.
// Invariant: an agent's files lie in a directory of these checks alone. All tasks share setup layers: one is reused only if none of its
// inputs changed. Otherwise the setup commands run here, over the merged tree, and their results are removed with the checks.
import { lstatSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createCheckGit, packCommit, setAttributes, type LayerGit } from '../git/staging/layer-git.ts';
import { commitHas, findDelta, listIndex, writeDelta, writeWhole, type Delta } from '../git/staging/snapshot.ts';
import { ensureWhiteout } from '../sandbox/checks/host.ts';
import type { LayerFile } from '../store/layers.ts';
import { excludeLine } from '../setup/layers.ts';
import { hiddenAmong, prepareSnapshot, type LayersWish, type PreparedLayers } from '../workspace/prepare-snapshot.ts';
import type { MergedBranch } from './merge-tree.ts';
import type { RunPlan } from '../run/run-plan.ts';
import { ensureSetup, findInputs, inputsAmong } from '../setup/setup-layer.ts';
import type { Snapshot } from '../workspace/snapshots.ts';
import type { HostContext } from '../run/host-context.ts';

export interface CheckLayers extends PreparedLayers {
  /** 'private': the setup commands must first run over these layers. */
  readonly setup: 'none' | 'shared' | 'private';
}

/** Writes only into `place`, which must be empty. `commit` has the merged tree and is in `staging`. */
export async function prepareCheckLayers(
  context: HostContext,
  plan: RunPlan,
  merged: MergedBranch & { readonly commit: string; readonly staging: string },
  place: { readonly root: string; readonly files: string; readonly index: string },
  wish: Omit<LayersWish, 'commit'>,
): Promise<CheckLayers> {
  const want = { ...wish, commit: merged.from };
  const { input, base, prepared } = await prepareSnapshot(context, plan, want);
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

/** Writes the difference from the snapshot, or all files, into `place`. Returns the layers below. */
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

/** Returns null if no whiteout can be made here. */
async function whiteoutFor({ whiteouts }: Delta, directory: string): Promise<string | null> {
  if (whiteouts.length === 0) return '';
  const path = await ensureWhiteout(directory);
  return lstatSync(path, { throwIfNoEntry: false })?.isCharacterDevice() === true ? path : null;
}

/** True if the merged tree has nothing where the layer lies, and has every directory that the two share. */
async function fits(git: LayerGit, tree: string, { roots, shared }: LayerFile): Promise<boolean> {
  const has = await commitHas(git, tree, [...roots, ...shared]);
  return !roots.some((path) => has.has(path)) && shared.every((path) => has.get(path) === 'tree');
}
