// workspace/prepare-snapshot.ts: what the workspace of an agent stands on: a snapshot of the base commit, and over it what the project's
// setup commands have made. Neither moves, whatever the user does to the project meanwhile.
import { AgsError } from '../protocol/errors.ts';
import { HIDE } from '../config/defaults.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { compileHidden } from '../config/patterns.ts';
import { listIndex, type IndexEntry } from '../git/staging/snapshot.ts';
import { tellDiskTrouble } from '../run/disk-errors.ts';
import { shownPlaces, type RunPlan } from '../run/plan-run.ts';
import { remembered } from './snapshot-facts.ts';
import { ensureSetup } from '../setup/setup-layer.ts';
import { ensureSnapshot, layerGitOf, type Snapshot, type SnapshotInput } from './snapshots.ts';
import type { World } from '../run/host-context.ts';

export interface PreparedLayers {
  readonly commit: string;
  /** Topmost first: [setup layer?, newest delta, ..., full snapshot]. Read-only directories of ours that no sandbox can write. */
  readonly layers: readonly string[];
  /** A git index that fits them (stat data valid inside with core.checkStat=minimal): copied into the private git directory. */
  readonly index: string;
  /** Files of the commit that the user wants hidden; for RunFile.hidden. */
  readonly hidden: readonly string[];
  /** What setup has added, as lines for info/exclude: nobody's work, so never part of a commit by accident. */
  readonly exclude: readonly string[];
  /** What is checked out, in full; without it the branch of the task. */
  readonly branch?: string;
  /** Packs with what the user's repository does not have of the commit, by their paths without an ending. */
  readonly packs?: readonly string[];
}

export interface LayersWish {
  readonly commit: string;
  /** The task that they are for. */
  readonly task: string;
  onStep(step: { kind: 'snapshot' | 'setup'; text: string }): void;
  /** What setup commands print. */
  onOutput(line: string): void;
  readonly signal: AbortSignal;
}

/** For everybody after the first this takes milliseconds, whatever the size of the project. */
export function prepareLayers(world: World, plan: RunPlan, want: LayersWish): Promise<PreparedLayers> {
  return tellDiskTrouble(world, async () => {
    const { input, base, prepared } = await prepareSnapshot(world, plan, want);
    const setup = await ensureSetup(input, plan, base, prepared, want);
    if (setup === null) return prepared;
    return { ...prepared, layers: [setup.files, ...base.files], exclude: setup.file.roots.map(excludeLine) };
  });
}

/** The files of the commit alone. */
export async function prepareSnapshot(
  world: World,
  plan: RunPlan,
  want: LayersWish,
): Promise<{ input: SnapshotInput; base: Snapshot; prepared: PreparedLayers }> {
  const { repository } = plan.project;
  if (repository === null)
    throw new AgsError('project.unsuitable', `${plan.project.root} is not a git repository.`, {
      hint: 'A task of an agent starts from a commit: git init && git add -A && git commit -m start',
    });
  const input: SnapshotInput = {
    world,
    repository,
    shown: shownPlaces(plan),
    commit: want.commit,
    onStep: (text) => want.onStep({ kind: 'snapshot', text }),
    signal: want.signal,
  };
  const base = await ensureSnapshot(input);
  const hidden = await findHidden(input, base, plan.config);
  return {
    input,
    base,
    prepared: { commit: want.commit, layers: base.files, index: base.layer.index, hidden, exclude: [] },
  };
}

/** Exactly this path, whatever characters it has. */
export function excludeLine(path: string): string {
  return `/${path.replaceAll(/[\\*?[\] !#]/g, String.raw`\$&`)}`;
}

/** The built-in patterns are for files that git does not track, and a snapshot has no others; what the user named is hidden. */
async function findHidden(input: SnapshotInput, base: Snapshot, config: EffectiveConfig): Promise<readonly string[]> {
  const asked = askedToHide(config);
  if (asked.length === 0) return [];
  return remembered(base, 'hidden', [asked, config.reveal], async () =>
    hiddenAmong(await listIndex(layerGitOf(input), base.layer.index), config),
  );
}

function askedToHide({ hide }: EffectiveConfig): readonly string[] {
  return hide.slice(HIDE.length);
}

export function hiddenAmong(entries: readonly IndexEntry[], config: EffectiveConfig): readonly string[] {
  const asked = askedToHide(config);
  if (asked.length === 0) return [];
  const isHidden = compileHidden(asked, config.reveal);
  const found = new Set<string>();
  for (const { path } of entries) {
    const dir = parents(path).find((one) => found.has(one) || isHidden(one, true));
    if (dir !== undefined || isHidden(path, false)) found.add(dir ?? path);
  }
  return [...found];
}

function parents(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, i) => names.slice(0, i + 1).join('/'));
}
