// workspace/agent-workspace.ts: the run of an agent: like that of a command, but its workspace stands on layers that do not move, and its
// git directory is on a branch of its own at the base commit.
import { copyFileSync, mkdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { SandboxSpec } from '../protocol/spec.ts';
import { giveTree, layerAt } from '../lib/files.ts';
import { createPrivateGit } from '../git/private-git.ts';
import type { MoreInside } from '../sandbox/spec/plan-sandbox.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { PreparedLayers } from './prepare-snapshot.ts';
import { borrowedObjectsOf, describeRun, shownPlaces, type RunPlan } from '../run/plan-run.ts';
import type { World } from '../run/host-context.ts';

/** Makes the directories of the run, for as many turns as there will be. */
export async function createAgentRun(
  plan: RunPlan,
  paths: TaskPaths,
  taskName: string,
  prepared: PreparedLayers,
): Promise<void> {
  const { repository } = plan.project;
  if (repository === null) throw new Error('the task of an agent needs a repository');
  mkdirSync(paths.runDir, { mode: 0o755 });
  for (const dir of [paths.home, paths.git]) mkdirSync(dir, { mode: 0o755 });
  if (plan.workspace === 'overlay') {
    mkdirSync(paths.upper, { mode: statSync(prepared.layers.at(-1) ?? '/').mode & 0o777 });
    mkdirSync(paths.work, { mode: 0o755 });
    // Where the private git directory is mounted: a snapshot has none.
    mkdirSync(join(paths.upper, '.git'));
  } else {
    const { copyLayers } = await import('./copy-layers.ts');
    await copyLayers({ layers: prepared.layers, to: paths.copy, hidden: prepared.hidden });
  }
  createPrivateGit({
    repository,
    directory: paths.git,
    checkStat: 'minimal',
    shown: shownPlaces(plan),
    at: {
      branch: prepared.branch ?? `refs/heads/ags/${taskName}`,
      commit: prepared.commit,
      index: prepared.index,
      exclude: prepared.exclude,
    },
  });
  addPacks(paths.git, prepared.packs ?? []);
  for (const dir of [paths.upper, paths.work, paths.home, paths.git, paths.copy]) giveTree(dir, plan.user);
}

function addPacks(gitDir: string, packs: readonly string[]): void {
  const place = join(gitDir, 'objects/pack');
  mkdirSync(place, { recursive: true });
  for (const pack of packs)
    for (const ending of ['pack', 'idx']) copyFileSync(`${pack}.${ending}`, join(place, `${basename(pack)}.${ending}`));
}

/** What the backend starts for one turn. Nothing is made. */
export function describeAgentRun(
  world: World,
  plan: RunPlan,
  paths: TaskPaths,
  taskName: string,
  prepared: Pick<PreparedLayers, 'layers' | 'hidden'>,
  more: MoreInside,
): SandboxSpec {
  const over = {
    ...plan,
    layers: prepared.layers.map(layerAt),
    hidden: { paths: prepared.hidden, trackedSecrets: [] },
    // A directory below may not be part of the commit.
    cwd: plan.project.root,
  };
  return describeRun(world, over, paths, taskName, borrowedObjectsOf(plan), more);
}
