// services/sandbox.ts: the sandbox of one service: programs of this machine or of an image, a data directory, and nothing else.
// Invariant: no file of the project but its seed, no network but its own loopback, no door, no secret, no variable of the user's.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ServiceConfig } from '../protocol/service.ts';
import {
  HOST_ROOT,
  hostPath,
  sandboxPath,
  type Mount,
  type SandboxSpec,
  type WorkspaceMount,
} from '../protocol/spec.ts';
import { ETC } from '../config/defaults.ts';
import { listEtc } from '../config/etc.ts';
import { giveTree } from '../lib/files.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { ensureEtcCopy } from '../sandbox/spec/etc-copy.ts';
import { INSIDE_HOST, INSIDE_HOST_SCRIPT } from '../sandbox/io/inside-host.ts';
import { rootOf, type Image } from '../sandbox/spec/image.ts';
import { NO_MACHINE, readMachine, type Machine } from '../sandbox/spec/machine.ts';
import { accountFiles, planSandbox } from '../sandbox/spec/plan-sandbox.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { PlannedService } from '../run/planned-services.ts';
import type { RunPlan } from '../run/plan-run.ts';
import type { ServiceRoot } from './root.ts';
import { NO_SIGNALS, supervise } from '../run/supervise.ts';
import type { World } from '../run/host-context.ts';

const DATA = '/run/ags/data';
const HOME = '/run/ags/home';
export const SEED_DIR = '/run/ags/seed';

export interface ServiceSandbox {
  /** The task it is for. */
  readonly task: string;
  /** Names its control group. */
  readonly group: string;
  readonly paths: TaskPaths;
  readonly data: WorkspaceMount;
  readonly files: readonly { readonly to: string; readonly content: string; readonly binary: boolean }[];
  readonly command: readonly string[];
  readonly wallSeconds: number | null;
  /** Its standard output and error are pipes. */
  onStart(sandbox: Sandbox): void;
}

/** Until no process of it is left. */
export function runService(
  world: World,
  on: ServiceRoot,
  one: PlannedService,
  want: ServiceSandbox,
): Promise<{ exitCode: number; ended: string | null }> {
  const { plan } = on;
  makeOwn(want.paths.home, plan);
  return supervise({
    world,
    plan,
    id: want.task,
    group: want.group,
    spec: describeService(world, on, one, want),
    paths: want.paths,
    signals: NO_SIGNALS,
    network: { onDoor: () => undefined, started: () => undefined },
    request: {
      command: want.command,
      openStdio: async () => ({
        stdio: { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', terminal: null },
        close: async () => undefined,
      }),
    },
    onStart: (sandbox) => want.onStart(sandbox),
  });
}

/** A directory that the sandbox's user may write in; one that is there has been given to them. */
export function makeOwn(path: string, { user }: Pick<RunPlan, 'user'>): void {
  if (existsSync(path)) return;
  mkdirSync(path, { recursive: true, mode: 0o755 });
  giveTree(path, user);
}

/** A data directory with nothing in it. */
export function emptyData(paths: TaskPaths, plan: RunPlan): WorkspaceMount {
  makeOwn(paths.copy, plan);
  return { kind: 'copy', directory: hostPath(paths.copy), writable: true };
}

function describeService(world: World, on: ServiceRoot, one: PlannedService, want: ServiceSandbox): SandboxSpec {
  const { plan, image } = on;
  const { service, to } = one;
  const user = { ...plan.user, shell: '/bin/sh' };
  const accounts = accountFiles(user, HOME, '# No name server: there is no network.\n');
  const spec = planSandbox({
    machine: image === null ? machineOf(world, plan) : NO_MACHINE,
    root: image === null ? HOST_ROOT : rootOf(image),
    imageEnv: image?.env ?? {},
    runtime: plan.config.runtime,
    user,
    home: HOME,
    homeDir: want.paths.home,
    etc:
      image === null
        ? {
            kind: 'copy',
            directory: ensureEtcCopy({ cacheDir: world.cacheDir, patterns: ETC, list: listEtc, made: accounts }),
          }
        : { kind: 'files', files: accounts },
    project: DATA,
    cwd: image === null || one.preset !== null ? DATA : image.workdir,
    workspace: want.data,
    git: null,
    // Places where distributions keep programs, not what the user has added.
    extraMounts:
      image === null
        ? plan.config.mounts.filter(({ optional, path }) => optional && existsSync(path)).map(({ path }) => path)
        : [],
    hostEnv: image === null ? { PATH: 'path' in one.programs ? one.programs.path.join(':') : '' } : {},
    envPass: [],
    pathEnv: [],
    networkEnv: {},
    files: want.files,
    envSet: {
      LANG: 'C.UTF-8',
      // An image may not have it, of which our own program need not complain.
      PERL_BADLANG: '0',
      DATA,
      PORT: String(to.port),
      SERVICE_USER: to.user,
      SERVICE_PASSWORD: to.password,
      SERVICE_DATABASE: to.database,
      ...service.environment,
    },
    limits: {
      ...plan.config.limits,
      memoryBytes: service.memoryBytes,
      cpuSeconds: null,
      wallSeconds: want.wallSeconds,
    },
    kernel: { ptrace: false, unixSockets: true },
    network: { kind: 'gateway', doors: [], reach: true },
    taskName: want.task,
    more: { mounts: [], files: [{ to: INSIDE_HOST, content: INSIDE_HOST_SCRIPT }], env: {} },
  });
  return image === null
    ? spec
    : { ...spec, mounts: [...spec.mounts, ...ownPlaces(image, service, on.plan, want.paths)] };
}

/** Programs of this machine, also where the agent has those of an image. */
function machineOf(world: World, plan: RunPlan): Machine {
  return plan.image === null ? plan.machine : readMachine({ home: world.home, etc: [], toolDirs: [] });
}

/** What an image calls its volumes lasts as long as the run; its scratch directories are empty whenever it starts. */
function ownPlaces(image: Image, service: ServiceConfig, plan: RunPlan, paths: TaskPaths): Mount[] {
  const volumes = image.volumes.map((path): Mount => {
    const from = join(paths.runDir, 'volumes', encodeURIComponent(path));
    makeOwn(from, plan);
    return {
      kind: 'bind',
      from: hostPath(from),
      to: sandboxPath(path),
      writable: true,
      veil: 'no',
      why: 'a volume of the image',
    };
  });
  const scratch = service.scratch.map((path): Mount => ({
    kind: 'tmpfs',
    to: sandboxPath(path),
    bytes: plan.config.limits.tmpBytes,
    mode: '0755',
    why: 'services.scratch',
  }));
  return [...volumes, ...scratch];
}
