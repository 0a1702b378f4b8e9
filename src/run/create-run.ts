// run/create-run.ts: turns the plan of a run into its directories and the SandboxSpec that a backend starts.
import { existsSync, lstatSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { giveTree } from '../lib/files.ts';
import { hostPath, type SandboxSpec, type WorkspaceMount } from '../protocol/spec.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { listEtc } from '../config/etc.ts';
import type { Repository } from '../git/repository.ts';
import { createPrivateGit, type PrivateGit } from '../git/private-git.ts';
import type { TaskPaths } from '../store/layout.ts';
import { ensureEtcCopy } from '../sandbox/spec/etc-copy.ts';
import {
  accountFiles,
  NOTHING_MORE,
  planSandbox,
  type MoreInside,
  type PlanInput,
} from '../sandbox/spec/plan-sandbox.ts';
import { presentMounts } from './flag-targets.ts';
import { type HostContext } from './host-context.ts';

import { rootOfPlan, shownPlaces, type RunPlan } from './run-plan.ts';

/** Creates the directories of the run and returns the spec for the backend. */
export async function createRun(
  context: HostContext,
  plan: RunPlan,
  paths: TaskPaths,
  taskName: string,
  more: MoreInside = NOTHING_MORE,
): Promise<SandboxSpec> {
  const { project, user } = plan;
  mkdirSync(paths.runDir, { mode: 0o755 });
  const projectMode = statSync(project.root).mode & 0o777;
  for (const dir of [paths.home, paths.git]) mkdirSync(dir, { mode: 0o755 });
  if (plan.workspace === 'overlay') {
    mkdirSync(paths.upper, { mode: projectMode });
    mkdirSync(paths.work, { mode: 0o755 });
    // In a linked worktree or a submodule .git is a file, on which no directory can be mounted: a directory in the upper covers it.
    if (project.repository !== null && !lstatSync(join(project.root, '.git')).isDirectory())
      mkdirSync(join(paths.upper, '.git'));
  } else {
    const { copyProject } = await import('./copy-project.ts');
    await copyProject({
      from: project.root,
      to: paths.copy,
      hidden: plan.hidden.paths,
      git: project.repository !== null,
    });
  }
  const objects =
    project.repository === null
      ? []
      : createPrivateGit({
          repository: project.repository,
          directory: paths.git,
          checkStat: context.uid === 0 || plan.workspace === 'copy' ? 'minimal' : 'full',
          shown: shownPlaces(plan),
        }).objects;
  const spec = describeRun(context, plan, paths, taskName, objects, more);
  for (const dir of [paths.upper, paths.work, paths.home, paths.git, paths.copy]) giveTree(dir, user);
  return spec;
}

export function describeRun(
  context: HostContext,
  plan: RunPlan,
  paths: TaskPaths,
  taskName: string,
  objects: PrivateGit['objects'],
  more: MoreInside = NOTHING_MORE,
): SandboxSpec {
  const { project, config } = plan;
  const git =
    project.repository === null
      ? null
      : {
          mounts: [
            { from: paths.git, to: join(project.root, '.git'), writable: true, why: "the task's own git directory" },
            ...linkedModules(project.repository, paths.git),
            ...objects.map((store) => ({ ...store, writable: false, why: 'objects of your repository' })),
          ],
        };
  return planSandbox({
    machine: plan.machine,
    user: plan.user,
    home: context.home,
    homeDir: plan.keptHome ?? paths.home,
    homeStays: plan.keptHome !== undefined,
    root: rootOfPlan(plan),
    imageEnv: plan.image?.env ?? {},
    etc: planEtc(context, plan, more),
    project: project.root,
    cwd: plan.cwd,
    workspace: workspaceMount(plan, paths),
    git,
    extraMounts: presentMounts(config, plan.image !== null).filter((path) => !path.startsWith('/etc/')),
    hostEnv: context.env,
    envPass: config.envPass,
    pathEnv: config.pathEnv,
    networkEnv: plan.network.env,
    files: plan.network.files,
    envSet: config.envSet,
    limits: config.limits,
    kernel: config.kernel,
    network: plan.network.spec,
    runtime: config.runtime,
    taskName,
    more,
  });
}

/** An image has its own /etc; only the account files are added. */
function planEtc(
  context: HostContext,
  { config, user, network, services, image }: RunPlan,
  more: MoreInside,
): PlanInput['etc'] {
  const accounts = accountFiles(user, context.home, network.resolvConf, services.hosts);
  if (image !== null) return { kind: 'files', files: accounts };
  const directory = ensureEtcCopy({
    cacheDir: context.cacheDir,
    patterns: [...config.etc, ...etcMounts(config)],
    list: listEtc,
    made: { ...accounts, ...mountPointsInEtc(more) },
  });
  return { kind: 'copy', directory };
}

/** Empty files as mount points: the copy of /etc is shared by all sandboxes and read-only. */
function mountPointsInEtc({ files }: MoreInside): Record<string, string> {
  return Object.fromEntries(
    files.flatMap(({ to }) => (to.startsWith('/etc/') ? [[to.slice('/etc/'.length), ''] as const] : [])),
  );
}

/** The submodules of a linked worktree have their git directories beside its entry in the main repository. */
function linkedModules(
  { gitDir, commonDir }: Repository,
  directory: string,
): { from: string; to: string; writable: boolean; why: string }[] {
  const to = join(gitDir, 'modules');
  if (gitDir === commonDir || !existsSync(to)) return [];
  return [
    { from: join(directory, 'modules'), to, writable: true, why: "the task's own git directories of submodules" },
  ];
}

function workspaceMount(plan: RunPlan, paths: TaskPaths): WorkspaceMount {
  if (plan.workspace === 'copy') return { kind: 'copy', directory: hostPath(paths.copy), writable: true };
  return {
    kind: 'overlay',
    layers: plan.layers ?? [{ path: hostPath(plan.project.root), identity: plan.project.identity }],
    hidden: plan.hidden.paths,
    upper: hostPath(paths.upper),
    work: hostPath(paths.work),
  };
}

/** /etc is one directory inside: mounts below it are copied with the rest. */
function etcMounts(config: EffectiveConfig): string[] {
  return config.mounts.flatMap(({ path }) => (path.startsWith('/etc/') ? [path.slice('/etc/'.length)] : []));
}
