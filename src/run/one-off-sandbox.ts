// run/one-off-sandbox.ts: run one program in a sandbox that belongs to no project and no task: to install an agent, to ask for its
// version, to let a user log in.
// Invariant: nothing of the user is inside but what every sandbox shows (system, tool directories, mounts of the configuration); no
// variable of theirs that could hold a credential, no secret, no file of a project. Whatever happens, its directory is gone
// afterwards, or is removed by the next one.
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
} from 'node:fs';
import { join } from 'node:path';
import type { NetworkPolicy } from '../protocol/network.ts';
import { hostPath, sandboxPath, type Mount, type SandboxSpec } from '../protocol/spec.ts';
import { loadConfig } from '../config/load.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import type { BackendChoice, EffectiveConfig } from '../config/effective.ts';
import { giveTree, removeTree } from '../lib/files.ts';
import { readMachine } from '../sandbox/spec/machine.ts';
import { taskPaths, type TaskPaths } from '../store/layout.ts';
import { OFFLINE, prepareNetwork } from './network/plan-network.ts';
import { NO_SERVICES } from './planned-services.ts';
import { describeRun, type RunPlan } from './plan-run.ts';
import { workspaceKind } from './readiness.ts';
import type { RunRequest } from '../exec/run-command.ts';
import { openRunNetwork, type DeniedHost } from './network/run-network.ts';
import { catchSignals, supervise } from './supervise.ts';
import { configInput, inspectWorld, sandboxUser, type World } from './host-context.ts';

/** Where the program starts, inside: empty, and the only place besides the home that it can write. */
export const APART_WORK = '/run/ags/work';

export interface ApartRequest {
  /** In logs: "install-codex". */
  readonly name: string;
  readonly command: readonly string[];
  /** null: nothing but loopback. The user's own denials, proxies and name servers are added. */
  readonly network: Partial<NetworkPolicy> | null;
  readonly mounts: readonly ProgramMount[];
  readonly files?: readonly { readonly to: string; readonly content: string }[];
  readonly env?: Readonly<Record<string, string>>;
  readonly limits?: Partial<SandboxSpec['limits']>;
  /** Without it there is nothing to read for the program, and what it prints is in `said`. */
  openStdio?: RunRequest['openStdio'];
  /** What builds it; native if not given. */
  readonly backend?: BackendChoice;
  notice(text: string): void;
  onStart?(sandbox: Sandbox): void;
  /** Told now and then how much it has written. */
  onLook?(bytes: number): void;
}

/** Read-only. */
export interface ProgramMount {
  readonly from: string;
  readonly to: string;
}

export interface ApartResult {
  readonly exitCode: number;
  /** Why it was ended early, in words. */
  readonly ended: string | null;
  readonly denied: readonly DeniedHost[];
  /** How its output begins; hostile text. */
  readonly said: string;
  /** On this machine: what it left. */
  readonly work: string;
  readonly home: string;
}

/**
 * `use` is called when no process of it is left. What it does not take away is removed. The directory is made in `parent`,
 * so that taking is a rename.
 */
export async function runApart<T>(
  world: World,
  parent: string,
  request: ApartRequest,
  use: (result: ApartResult) => T | Promise<T>,
): Promise<T> {
  const dir = makeApart(parent);
  try {
    const paths = taskPaths(dir, 'apart');
    const output = join(dir, 'output');
    const { config, plan } = await planApart(world, dir, request);
    const spec = describeSpec(world, plan, paths, request);
    using signals = catchSignals();
    await using network = openRunNetwork({
      world,
      id: request.name,
      startedAtMs: world.now().getTime(),
      project: dir,
      events: paths.events,
      config,
      grants: plan.network.grants,
      secrets: plan.network.secrets,
      notice: request.notice,
      services: null,
      docker: null,
    });
    using _look = lookNowAndThen(dir, request.onLook);
    const { exitCode, ended } = await supervise({
      world,
      plan,
      id: request.name,
      network,
      request: { ...request, openStdio: request.openStdio ?? intoFile(output) },
      spec,
      paths,
      signals,
      onStart: (sandbox) => request.onStart?.(sandbox),
    });
    const said = readStart(output);
    return await use({ exitCode, ended, denied: network.denied(), said, work: paths.copy, home: paths.home });
  } finally {
    removeTree(dir);
  }
}

/** A directory that is gone when this process is and the next one comes. */
export function makeApart(parent: string): string {
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  sweep(parent);
  return realpathSync(mkdtempSync(join(parent, `${APART}${process.pid}-`)));
}

function intoFile(path: string): RunRequest['openStdio'] {
  return () => {
    const fd = openSync(path, 'w', 0o600);
    return Promise.resolve({
      stdio: { stdin: 'ignore', stdout: fd, stderr: fd, terminal: null },
      close: () => Promise.resolve(closeSync(fd)),
    });
  };
}

function readStart(path: string): string {
  if (!existsSync(path)) return '';
  const fd = openSync(path, 'r');
  try {
    const start = Buffer.alloc(SAID_BYTES);
    return start.toString('utf8', 0, readSync(fd, start));
  } finally {
    closeSync(fd);
  }
}

const SAID_BYTES = 16_384;
const APART = '.apart-';
const LOOK_MS = 1000;

function lookNowAndThen(dir: string, onLook: ((bytes: number) => void) | undefined): Disposable {
  if (onLook === undefined) return { [Symbol.dispose]: () => undefined };
  let over = false;
  const look = async (): Promise<void> => {
    const bytes = await diskUsage(dir);
    if (!over) onLook(bytes);
  };
  const timer = setInterval(() => void look(), LOOK_MS).unref();
  return {
    [Symbol.dispose]() {
      over = true;
      clearInterval(timer);
    },
  };
}

export async function diskUsage(directory: string): Promise<number> {
  const { measureDisk } = await import('../sandbox/watch/disk-usage.ts');
  const all = { directories: [directory], pids: [], places: [], maxBytes: Infinity, maxFiles: Infinity };
  return (await measureDisk(all, new AbortController().signal))?.bytes ?? 0;
}

/** What one that was killed has left. */
function sweep(parent: string): void {
  for (const name of readdirSync(parent).filter((entry) => entry.startsWith(APART))) {
    const pid = name.slice(APART.length).split('-')[0] ?? '';
    if (!existsSync(`/proc/${pid}`) && lstatSync(join(parent, name)).isDirectory()) removeTree(join(parent, name));
  }
}

async function planApart(
  world: World,
  dir: string,
  request: ApartRequest,
): Promise<{ config: EffectiveConfig; plan: RunPlan }> {
  const own = await userConfig(world, dir);
  const config: EffectiveConfig = {
    ...own,
    // A variable that the user passes on may be a token.
    envPass: PLAIN_VARIABLES,
    envSet: {},
    services: [],
    limits: { ...own.limits, ...request.limits },
    network: narrowed(own.network, request.network),
    secrets: [],
    docker: { enabled: false, registries: [] },
  };
  const host = await inspectWorld(world, {}, request.backend ?? own.backend);
  const choice = await workspaceKind(world, host, 'auto');
  const reachable = world.uid === 0 || choice.namespaces;
  const root = world.uid === 0;
  const plan: RunPlan = {
    project: { root: APART_WORK, identity: '', repository: null },
    config,
    configured: config,
    host,
    image: null,
    hidden: { paths: [], trackedSecrets: [] },
    user: {
      ...sandboxUser(world, config),
      name: root ? 'agent' : world.userName,
      shell: world.shell,
    },
    cwd: APART_WORK,
    workspace: 'copy',
    overlays: choice.overlays,
    namespaces: choice.namespaces,
    machine: readMachine({ home: world.home, etc: [], toolDirs: config.toolDirs }),
    network: request.network === null ? OFFLINE : await prepareNetwork(world, config, reachable),
    services: NO_SERVICES,
    notices: [],
  };
  return { config, plan };
}

/** Without any project. */
export function userConfig(world: World, emptyDir: string): Promise<EffectiveConfig> {
  return loadConfig(configInput(world, emptyDir));
}

const PLAIN_VARIABLES = ['LANG', 'LC_*', 'TERM', 'COLORTERM', 'TZ', 'NO_COLOR', 'FORCE_COLOR'];

function narrowed(own: NetworkPolicy, wanted: Partial<NetworkPolicy> | null): NetworkPolicy {
  if (wanted === null) return { ...own, mode: 'off' };
  return {
    ...own,
    mode: 'on',
    presets: [],
    tcp: [],
    publish: [],
    ...wanted,
    addresses: [...own.addresses, ...(wanted.addresses ?? [])],
    rules: [...own.rules.filter(({ action }) => action === 'deny'), ...(wanted.rules ?? [])],
  };
}

function describeSpec(world: World, plan: RunPlan, paths: TaskPaths, request: ApartRequest): SandboxSpec {
  mkdirSync(paths.runDir, { recursive: true, mode: 0o755 });
  for (const dir of [paths.home, paths.copy]) {
    mkdirSync(dir, { mode: 0o755 });
    giveTree(dir, plan.user);
  }
  const spec = describeRun(world, plan, paths, request.name, []);
  return {
    ...spec,
    env: { ...spec.env, ...request.env },
    mounts: [
      ...spec.mounts,
      ...request.mounts.map(({ from, to }): Mount => ({
        kind: 'bind',
        from: hostPath(from),
        to: sandboxPath(to),
        writable: false,
        veil: 'may',
        why: 'the program of the agent',
      })),
      ...(request.files ?? []).map(({ to, content }): Mount => ({
        kind: 'file',
        content,
        to: sandboxPath(to),
        why: 'settings of this one run',
      })),
    ],
  };
}
