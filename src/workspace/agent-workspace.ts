// workspace/agent-workspace.ts: creates and describes an agent's run. Unlike a command's run, its workspace is based on layers that
// never change, and its git directory is on its own branch at the base commit.
import { copyFileSync, mkdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { SandboxSpec } from '../protocol/spec.ts';
import { giveTree, layerAt } from '../lib/files.ts';
import { createPrivateGit } from '../git/private-git.ts';
import type { MoreInside } from '../sandbox/spec/plan-sandbox.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { PreparedLayers } from './prepare-snapshot.ts';
import { borrowedObjectsOf, shownPlaces, type RunPlan } from '../run/run-plan.ts';
import { describeRun } from '../run/create-run.ts';
import type { HostContext } from '../run/host-context.ts';

/** Creates the directories of the run; all of its turns use them. */
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
    // The mount point of the private git directory: a snapshot has no .git.
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

/** Plans the sandbox of one turn. Creates nothing. */
export function describeAgentRun(
  context: HostContext,
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
    // The user's current subdirectory may not be part of the commit.
    cwd: plan.project.root,
  };
  return describeRun(context, over, paths, taskName, borrowedObjectsOf(plan), more);
}
