// setup/setup-key.ts: computes the cache key of a project's setup layer from everything that decides its content.
import { createHash } from 'node:crypto';
import { realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { EffectiveConfig } from '../config/effective.ts';
import { compilePatterns } from '../config/patterns.ts';
import { SETUP_INPUTS, SETUP_TOOLS } from '../config/setup-inputs.ts';
import { listIndex, type IndexEntry } from '../git/staging/snapshot.ts';
import { remembered } from '../workspace/snapshot-facts.ts';
import type { RunPlan } from '../run/run-plan.ts';
import { layerGitOf, type Snapshot, type SnapshotInput } from '../workspace/snapshots.ts';

// Raise it when the same commands would produce a different layer.
const FORMAT = 1;

export async function setupKey(input: SnapshotInput, base: Snapshot, plan: RunPlan): Promise<string> {
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
      const stat = statSync(file, { throwIfNoEntry: false });
      if (stat?.isFile() === true) return [`${realpathSync(file)} ${stat.size} ${stat.mtimeMs}`];
    }
    return [];
  });
}
