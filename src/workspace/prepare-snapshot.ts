// workspace/prepare-snapshot.ts: prepares the files of one commit as the layers of a workspace, without the files that the user hides.
import { AgsError } from '../protocol/errors.ts';
import { HIDE } from '../config/defaults.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { compileHidden } from '../config/patterns.ts';
import { listIndex, type IndexEntry } from '../git/staging/snapshot.ts';
import { shownPlaces, type RunPlan } from '../run/run-plan.ts';
import { remembered } from './snapshot-facts.ts';
import { ensureSnapshot, layerGitOf, type Snapshot, type SnapshotInput } from './snapshots.ts';
import type { HostContext } from '../run/host-context.ts';

export interface PreparedLayers {
  readonly commit: string;
  /** Topmost first: [setup layer?, newest delta, ..., full snapshot]. Directories of ags that no sandbox can write. */
  readonly layers: readonly string[];
  /** A git index that matches them (stat data valid inside with core.checkStat=minimal), copied into the private git directory. */
  readonly index: string;
  /** Files of the commit that the user hides; stored as RunFile.hidden. */
  readonly hidden: readonly string[];
  /** Paths that setup added, as lines for info/exclude, so that an agent does not commit them by accident. */
  readonly exclude: readonly string[];
  /** Full name of the branch to check out; without it, the branch of the task. */
  readonly branch?: string;
  /** Packs with objects of the commit that the user's repository does not have, as paths without an extension. */
  readonly packs?: readonly string[];
}

export interface LayersWish {
  readonly commit: string;
  readonly task: string;
  onStep(step: { kind: 'snapshot' | 'setup'; text: string }): void;
  /** A line of output from a setup command. */
  onOutput(line: string): void;
  readonly signal: AbortSignal;
}

/** Prepares the files of the commit only, without the setup layer. */
export async function prepareSnapshot(
  context: HostContext,
  plan: RunPlan,
  want: LayersWish,
): Promise<{ input: SnapshotInput; base: Snapshot; prepared: PreparedLayers }> {
  const { repository } = plan.project;
  if (repository === null)
    throw new AgsError('project.unsuitable', `${plan.project.root} is not a git repository.`, {
      hint: 'An agent starts from a commit: git init && git add -A && git commit -m start',
    });
  const input: SnapshotInput = {
    context,
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

/** Applies only the user's patterns: the built-in ones are for untracked files, and a snapshot has only tracked files. */
async function findHidden(input: SnapshotInput, base: Snapshot, config: EffectiveConfig): Promise<readonly string[]> {
  const patterns = userPatterns(config);
  if (patterns.length === 0) return [];
  return remembered(base, 'hidden', [patterns, config.reveal], async () =>
    hiddenAmong(await listIndex(layerGitOf(input), base.layer.index), config),
  );
}

function userPatterns({ hide }: EffectiveConfig): readonly string[] {
  return hide.slice(HIDE.length);
}

export function hiddenAmong(entries: readonly IndexEntry[], config: EffectiveConfig): readonly string[] {
  const patterns = userPatterns(config);
  if (patterns.length === 0) return [];
  const isHidden = compileHidden(patterns, config.reveal);
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
