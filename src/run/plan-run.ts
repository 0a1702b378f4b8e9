// run/plan-run.ts: from a directory and a command to a SandboxSpec and everything it stands on.
// Invariant: plan first, act last. `planRun` writes nothing but its memory of the last scan; `createRun` makes the directories.
import { existsSync, lstatSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { giveTree } from '../lib/files.ts';
import { HOST_ROOT, hostPath, type Layer, type SandboxSpec, type WorkspaceMount } from '../protocol/spec.ts';
import type { RunFile } from '../protocol/task.ts';
import type { ConfigFlags, EffectiveConfig } from '../config/effective.ts';
import { listEtc } from '../config/etc.ts';
import { loadConfig } from '../config/load.ts';
import type { Repository } from '../git/inspect.ts';
import { borrowedObjects, createPrivateGit, type PrivateGit } from '../git/private-git.ts';
import type { TaskPaths } from '../store/layout.ts';
import { ensureEtcCopy } from '../sandbox/spec/etc-copy.ts';
import type { NativeHost } from '../sandbox/checks/host.ts';
import { rootOf, type Image } from '../sandbox/spec/image.ts';
import { NO_MACHINE, readMachine, type Machine } from '../sandbox/spec/machine.ts';
import {
  accountFiles,
  NOTHING_MORE,
  planSandbox,
  type MoreInside,
  type PlanInput,
} from '../sandbox/spec/plan-sandbox.ts';
import { prepareNetwork, type PlannedNetwork } from './network/plan-network.ts';
import { NO_SERVICES, serviceAddress, type PlannedCompose, type PlannedServices } from './planned-services.ts';
import { findHidden, type HiddenFiles } from './hidden-files.ts';
import { findProject, type Project } from './project.ts';
import { configInput, inspectWorld, sandboxUser, type World } from './host-context.ts';

export interface RunPlan {
  readonly project: Project;
  /** What the workspace stands on in place of the project's files, topmost first. */
  readonly layers?: readonly Layer[];
  readonly config: EffectiveConfig;
  /** What the user has configured, without what one agent or one trial needs besides. */
  readonly configured: EffectiveConfig;
  readonly host: NativeHost;
  /** null: a sandbox has the programs of this machine. */
  readonly image: Image | null;
  readonly hidden: HiddenFiles;
  readonly user: { readonly uid: number; readonly gid: number; readonly name: string; readonly shell: string };
  readonly cwd: string;
  readonly workspace: 'overlay' | 'copy';
  /** Overlays work here, whatever the workspace is. */
  readonly overlays: boolean;
  /** Others than bwrap may make namespaces here. */
  readonly namespaces: boolean;
  readonly machine: Machine;
  readonly network: PlannedNetwork;
  readonly services: PlannedServices;
  /** Said once, where the plan is weaker or slower than it could be. */
  readonly notices: readonly string[];
}

export interface PlanOptions {
  /** What an agent needs beside what is configured. */
  readonly adjust?: (config: EffectiveConfig) => EffectiveConfig;
  /** The sandbox is over the project's files as they are. */
  readonly live?: boolean;
  /** The image that an earlier turn had. */
  readonly pinned?: { readonly reference: string; readonly id: string } | undefined;
}

export async function planRun(world: World, flags: ConfigFlags, options: PlanOptions = {}): Promise<RunPlan> {
  const project = await findProject({
    cwd: world.cwd,
    home: world.home,
    stateDir: world.stateDir,
    cacheDir: world.cacheDir,
    dataDir: world.dataDir,
    configHome: world.env['XDG_CONFIG_HOME'],
  });
  const configured = await loadConfig(configInput(world, project.root, flags));
  const config = options.adjust?.(configured) ?? configured;
  // Whoever names an image wants a container.
  const backend =
    config.backend === 'auto' && config.image !== null
      ? (await import('../sandbox/engine/find-engine.ts')).needEngine(config.backend, world).name
      : config.backend;
  const host = await inspectWorld(world, {}, backend);
  if (config.runtime !== null)
    await (await import('../sandbox/engine/runtime.ts')).checkRuntime(host.engine, config.runtime);
  const image =
    config.image === null
      ? null
      : await import('../images/wanted/find-image.ts').then(({ findImage }) =>
          findImage(host, config, config.image ?? { kind: 'devcontainer' }, project.root, options.pinned ?? null),
        );
  if (host.engine?.far != null) (await import('./remote-limits.ts')).refuseWhatIsNear(config);
  const { workspaceKind } = await import('./readiness.ts');
  const choice = await workspaceKind(world, host, config.workspace);
  const root = world.uid === 0;
  const copies = choice.kind === 'copy' ? [`Workspace: a full copy, because ${choice.why}.`] : [];
  const machine = image === null ? readMachine({ home: world.home, etc: [], toolDirs: config.toolDirs }) : NO_MACHINE;
  const reachable = root || choice.namespaces;
  const { network, services } = await prepareWorldInside(world, config, reachable);
  if (config.docker.enabled) {
    const { innerOptions } = await import('../nested-docker/open-nested-docker.ts');
    innerOptions(world, config, '');
  }
  const offline =
    reachable || config.network.mode === 'off' ? [] : [NO_NETWORK, ...(config.docker.enabled ? [NO_DOCKER] : [])];
  const unseen = machine.leftOut.filter((path) => !config.mounts.some((mount) => mount.path === path));
  return {
    project,
    config,
    configured,
    host,
    image,
    hidden: options.live === false ? NOTHING_HIDDEN : await findHidden(world, project, config),
    user: {
      ...sandboxUser(world, config),
      name: root ? 'agent' : world.userName,
      shell: image === null ? world.shell : '/bin/sh',
    },
    cwd: realpathSync(world.cwd),
    workspace: choice.kind,
    overlays: choice.overlays,
    namespaces: choice.namespaces,
    machine,
    network,
    services,
    notices: [...copies, ...offline, ...unseen.map(notShown)],
  };
}

/** The network of a sandbox, and the services that have their doors in it. */
export async function prepareWorldInside(
  world: World,
  config: EffectiveConfig,
  possible: boolean,
  compose: PlannedCompose | null = null,
): Promise<{ network: PlannedNetwork; services: PlannedServices }> {
  const beside = [
    ...config.services.map(({ name }, i) => ({ name, address: serviceAddress(i) })),
    ...(compose?.list ?? []),
  ];
  const network = await prepareNetwork(world, config, possible, beside);
  if (beside.length === 0) return { network, services: NO_SERVICES };
  const { planServices } = await import('./plan-services.ts');
  return planServices(world, config.services, network, compose);
}

const NOTHING_HIDDEN: HiddenFiles = { paths: [], trackedSecrets: [] };

const NO_NETWORK =
  'Network: none but loopback, because this system lets no program but bwrap make namespaces (see: ags doctor).';

const NO_DOCKER = 'Docker inside: none, for the same reason.';

function notShown(path: string): string {
  return `${path} is not shown, because another file system is mounted below it. To show it as it is: --mount ${path}`;
}

/** Makes the directories of the run (unless only a plan is wanted) and returns what the backend starts. */
export async function createRun(world: World, plan: RunPlan, paths: TaskPaths, taskName: string): Promise<SandboxSpec> {
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
          checkStat: world.uid === 0 || plan.workspace === 'copy' ? 'minimal' : 'full',
          shown: shownPlaces(plan),
        }).objects;
  const spec = describeRun(world, plan, paths, taskName, objects);
  for (const dir of [paths.upper, paths.work, paths.home, paths.git, paths.copy]) giveTree(dir, user);
  return spec;
}

export function describeRun(
  world: World,
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
    home: world.home,
    homeDir: paths.home,
    root: rootOfPlan(plan),
    imageEnv: plan.image?.env ?? {},
    etc: planEtc(world, plan, more),
    project: project.root,
    cwd: plan.cwd,
    workspace: workspaceMount(plan, paths),
    git,
    extraMounts: visibleMounts(config, plan.image !== null),
    hostEnv: world.env,
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

/** Without a command, a shell is meant: the user's own, if it is there. */
export function commandOf({ user }: RunPlan, { command }: { readonly command: readonly string[] }): readonly string[] {
  return command.length > 0 ? command : [user.shell];
}

export function rootOfPlan({ image }: Pick<RunPlan, 'image'>): SandboxSpec['root'] {
  return image === null ? HOST_ROOT : rootOf(image);
}

/** For the file of the run: what it stands on does not change while it goes on. */
export function imageOf({ image }: RunPlan): Pick<RunFile, 'image'> {
  return image === null ? {} : { image: { reference: image.reference, id: image.id } };
}

/** For the file of the run: what builds its sandboxes, and where. */
export function builderOf({ host: { engine } }: RunPlan): Pick<RunFile, 'backend' | 'far'> {
  if (engine === null) return {};
  return engine.far === null ? { backend: engine.name } : { backend: engine.name, far: engine.far };
}

/** The /etc of an image is its own, but for who is who. */
function planEtc(
  world: World,
  { config, user, network, services, image }: RunPlan,
  more: MoreInside,
): PlanInput['etc'] {
  const accounts = accountFiles(user, world.home, network.resolvConf, services.hosts);
  if (image !== null) return { kind: 'files', files: accounts };
  const directory = ensureEtcCopy({
    cacheDir: world.cacheDir,
    patterns: [...config.etc, ...etcMounts(config)],
    list: listEtc,
    made: { ...accounts, ...mountPointsInEtc(more) },
  });
  return { kind: 'copy', directory };
}

/** Files that are put over empty ones: the copy of /etc is the same for all, and read-only. */
function mountPointsInEtc({ files }: MoreInside): Record<string, string> {
  return Object.fromEntries(
    files.flatMap(({ to }) => (to.startsWith('/etc/') ? [[to.slice('/etc/'.length), ''] as const] : [])),
  );
}

/** Object stores that the private git directory of a run borrows from. */
export function borrowedObjectsOf(plan: RunPlan): PrivateGit['objects'] {
  const { repository } = plan.project;
  return repository === null ? [] : borrowedObjects(repository, shownPlaces(plan));
}

export function shownPlaces({ config }: RunPlan): string[] {
  return config.mounts.map(({ path }) => path);
}

/** The submodules of a linked worktree look for their git directories beside its entry in the main repository. */
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

/** What is there by itself belongs to the programs of this machine. */
function visibleMounts(config: EffectiveConfig, overImage: boolean): string[] {
  return config.mounts
    .filter((mount) => {
      if (overImage && mount.optional) return false;
      if (existsSync(mount.path)) return true;
      if (mount.optional) return false;
      throw new AgsError('config.invalid', `${mount.path} is to be mounted, but does not exist.`, {
        hint: 'Correct "mounts" in the configuration: ags config',
      });
    })
    .map((mount) => mount.path)
    .filter((path) => !path.startsWith('/etc/'));
}

/** /etc is one directory inside: what is to be shown below it is copied with the rest. */
function etcMounts(config: EffectiveConfig): string[] {
  return config.mounts.flatMap(({ path }) => (path.startsWith('/etc/') ? [path.slice('/etc/'.length)] : []));
}
