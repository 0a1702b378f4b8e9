// services/sandbox.ts: the sandbox of one service: programs of this machine or an image, a data directory, nothing else.
// Invariant: it has no project file but its seeds, no network but its own loopback, no listener, no secret and no variable of the user.
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
import { INSIDE_HOST, insideHostScript } from '../sandbox/io/inside-host.ts';
import { rootOf, type Image } from '../sandbox/spec/image.ts';
import { NO_MACHINE, readMachine, type Machine } from '../sandbox/spec/machine.ts';
import { accountFiles, planSandbox } from '../sandbox/spec/plan-sandbox.ts';
import type { TaskPaths } from '../store/layout.ts';
import type { PlannedService } from '../run/planned-services.ts';
import type { RunPlan } from '../run/run-plan.ts';
import type { ServiceRoot } from './root.ts';
import { runSandboxed, writtenBy } from '../run/run-sandboxed.ts';
import type { HostContext } from '../run/host-context.ts';

const DATA = '/run/ags/data';
const HOME = '/run/ags/home';
export const SEED_DIR = '/run/ags/seed';

export interface ServiceSandbox {
  /** The ID of the task. */
  readonly task: string;
  /** The name of its control group. */
  readonly group: string;
  readonly paths: TaskPaths;
  readonly data: WorkspaceMount;
  readonly files: readonly { readonly to: string; readonly content: string; readonly binary: boolean }[];
  readonly command: readonly string[];
  readonly wallSeconds: number | null;
  /** stdout and stderr are pipes. */
  onStart(sandbox: Sandbox): void;
}

/** Resolves when no process of the service is left. */
export function runService(
  context: HostContext,
  on: ServiceRoot,
  one: PlannedService,
  want: ServiceSandbox,
): Promise<{ exitCode: number; ended: string | null }> {
  const { plan } = on;
  makeOwn(want.paths.home, plan);
  return runSandboxed({
    context,
    plan,
    id: want.task,
    group: want.group,
    spec: describeService(context, on, one, want),
    runDir: want.paths.runDir,
    written: writtenBy(want.paths),
    command: want.command,
    onStart: (sandbox) => want.onStart(sandbox),
  });
}

/** Creates a directory that the sandbox's user may write; an existing one already belongs to that user. */
export function makeOwn(path: string, { user }: Pick<RunPlan, 'user'>): void {
  if (existsSync(path)) return;
  mkdirSync(path, { recursive: true, mode: 0o755 });
  giveTree(path, user);
}

/** An empty data directory. */
export function emptyData(paths: TaskPaths, plan: RunPlan): WorkspaceMount {
  makeOwn(paths.copy, plan);
  return { kind: 'copy', directory: hostPath(paths.copy), writable: true };
}

function describeService(
  context: HostContext,
  on: ServiceRoot,
  one: PlannedService,
  want: ServiceSandbox,
): SandboxSpec {
  const { plan, image } = on;
  const { service, to } = one;
  const user = { ...plan.user, shell: '/bin/sh' };
  const accounts = accountFiles(user, HOME, '# No name server: there is no network.\n');
  const spec = planSandbox({
    machine: image === null ? machineOf(context, plan) : NO_MACHINE,
    root: image === null ? HOST_ROOT : rootOf(image),
    imageEnv: image?.env ?? {},
    runtime: plan.config.runtime,
    user,
    home: HOME,
    homeDir: want.paths.home,
    homeStays: false,
    etc:
      image === null
        ? {
            kind: 'copy',
            directory: ensureEtcCopy({ cacheDir: context.cacheDir, patterns: ETC, list: listEtc, made: accounts }),
          }
        : { kind: 'files', files: accounts },
    project: DATA,
    cwd: image === null || one.preset !== null ? DATA : image.workdir,
    workspace: want.data,
    git: null,
    // Only directories of the distribution, not directories that the user added.
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
      // The image may lack this locale; Perl programs of ags must not warn about that.
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
    network: { kind: 'gateway', listeners: [], reach: true },
    taskName: want.task,
    more: { mounts: [], files: [{ to: INSIDE_HOST, content: insideHostScript() }], env: {}, path: [] },
  });
  return image === null
    ? spec
    : { ...spec, mounts: [...spec.mounts, ...ownPlaces(image, service, on.plan, want.paths)] };
}

/** The programs of this machine, even if the agent uses an image. */
function machineOf(context: HostContext, plan: RunPlan): Machine {
  return plan.image === null ? plan.machine : readMachine({ home: context.home, etc: [], toolDirs: [] });
}

/** Volumes of the image last as long as the run; scratch directories start empty. */
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
