// run/one-off-sandbox.ts: runs one program in a sandbox without a project or task: to install an agent, to read its version, to let a
// user sign in.
// Invariant: of the user's files only those that every sandbox shows are inside (system, tool directories, configured mounts): no
// variable that could hold a credential, no secret, no file of a project. Its directory is always removed afterwards, or by the
// next one-off sandbox.
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
import { describeRun } from './create-run.ts';
import type { RunPlan } from './run-plan.ts';
import { workspaceKind } from './readiness.ts';
import { openRunNetwork, type DeniedHost } from './network/run-network.ts';
import { catchSignals, runSandboxed, writtenBy, type OpenStdio } from './run-sandboxed.ts';
import { configInput, inspectMachine, sandboxUser, type HostContext } from './host-context.ts';

/** The working directory inside: empty, and besides the home the only writable place. */
export const ONE_OFF_WORK = '/run/ags/work';

export interface OneOffRequest {
  /** For logs: "install-codex". */
  readonly name: string;
  readonly command: readonly string[];
  /** null: only loopback. The user's own deny rules, proxies and name servers are added. */
  readonly network: Partial<NetworkPolicy> | null;
  readonly mounts: readonly ProgramMount[];
  readonly files?: readonly { readonly to: string; readonly content: string }[];
  readonly env?: Readonly<Record<string, string>>;
  readonly limits?: Partial<SandboxSpec['limits']>;
  /** Without it the program has no input, and its output is in `said`. */
  openStdio?: OpenStdio;
  /** Default: the configured backend. */
  readonly backend?: BackendChoice;
  notice(text: string): void;
  onStart?(sandbox: Sandbox): void;
  /** Called from time to time with the bytes written so far. */
  onLook?(bytes: number): void;
}

/** Read-only. */
export interface ProgramMount {
  readonly from: string;
  readonly to: string;
}

export interface OneOffResult {
  readonly exitCode: number;
  /** Why it was stopped early. */
  readonly ended: string | null;
  readonly denied: readonly DeniedHost[];
  /** The beginning of its output; hostile text. */
  readonly said: string;
  /** On this machine: the files it left. */
  readonly work: string;
  readonly home: string;
}

/**
 * Calls `use` when no process of the sandbox is left. Files that it does not move away are removed. The directory is in `parent`, so
 * that moving is a rename.
 */
export async function runOneOff<T>(
  context: HostContext,
  parent: string,
  request: OneOffRequest,
  use: (result: OneOffResult) => T | Promise<T>,
): Promise<T> {
  const dir = makeOneOff(parent);
  try {
    const paths = taskPaths(dir, 'apart');
    const output = join(dir, 'output');
    const { config, plan } = await planOneOff(context, dir, request);
    const spec = describeSpec(context, plan, paths, request);
    using signals = catchSignals();
    await using network = openRunNetwork({
      context,
      id: request.name,
      startedAtMs: context.now().getTime(),
      project: dir,
      events: paths.events,
      config,
      grants: plan.network.grants,
      secrets: plan.network.secrets,
      notice: request.notice,
      services: null,
      docker: null,
    });
    using _look = reportUsage(dir, request.onLook);
    const { exitCode, ended } = await runSandboxed({
      context,
      plan,
      id: request.name,
      network,
      command: request.command,
      openStdio: request.openStdio ?? intoFile(output),
      spec,
      runDir: paths.runDir,
      written: writtenBy(paths),
      signals,
      onStart: (sandbox) => request.onStart?.(sandbox),
    });
    const said = readStart(output);
    return await use({ exitCode, ended, denied: network.denied(), said, work: paths.copy, home: paths.home });
  } finally {
    removeTree(dir);
  }
}

/** A directory that a later call removes once this process has ended. */
export function makeOneOff(parent: string): string {
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  sweep(parent);
  return realpathSync(mkdtempSync(join(parent, `${PREFIX}${process.pid}-`)));
}

function intoFile(path: string): OpenStdio {
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
const PREFIX = '.apart-';
const LOOK_MS = 1000;

function reportUsage(dir: string, onLook: ((bytes: number) => void) | undefined): Disposable {
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

/** Removes directories of killed processes. */
function sweep(parent: string): void {
  for (const name of readdirSync(parent).filter((entry) => entry.startsWith(PREFIX))) {
    const pid = name.slice(PREFIX.length).split('-')[0] ?? '';
    if (!existsSync(`/proc/${pid}`) && lstatSync(join(parent, name)).isDirectory()) removeTree(join(parent, name));
  }
}

async function planOneOff(
  context: HostContext,
  dir: string,
  request: OneOffRequest,
): Promise<{ config: EffectiveConfig; plan: RunPlan }> {
  const own = await userConfig(context, dir);
  const config: EffectiveConfig = {
    ...own,
    // A variable that the user passes on may be a token.
    envPass: PLAIN_VARIABLES,
    envSet: {},
    services: [],
    limits: { ...own.limits, ...request.limits },
    network: restrictNetwork(own.network, request.network),
    secrets: [],
    docker: { enabled: false, registries: [] },
  };
  const host = await inspectMachine(context, {}, request.backend ?? own.backend);
  const choice = await workspaceKind(context, host, 'auto');
  const reachable = context.uid === 0 || choice.namespaces;
  const root = context.uid === 0;
  const plan: RunPlan = {
    project: { root: ONE_OFF_WORK, identity: '', repository: null },
    config,
    configured: config,
    host,
    image: null,
    hidden: { paths: [], trackedSecrets: [] },
    user: {
      ...sandboxUser(context, config),
      name: root ? 'agent' : context.userName,
      shell: context.shell,
    },
    cwd: ONE_OFF_WORK,
    workspace: 'copy',
    overlays: choice.overlays,
    namespaces: choice.namespaces,
    machine: readMachine({ home: context.home, etc: [], toolDirs: config.toolDirs }),
    network: request.network === null ? OFFLINE : await prepareNetwork(context, config, reachable),
    services: NO_SERVICES,
    notices: [],
  };
  return { config, plan };
}

/** The user's configuration without a project. */
export function userConfig(context: HostContext, emptyDir: string): Promise<EffectiveConfig> {
  return loadConfig(configInput(context, emptyDir));
}

const PLAIN_VARIABLES = ['LANG', 'LC_*', 'TERM', 'COLORTERM', 'TZ', 'NO_COLOR', 'FORCE_COLOR'];

function restrictNetwork(own: NetworkPolicy, wanted: Partial<NetworkPolicy> | null): NetworkPolicy {
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

function describeSpec(context: HostContext, plan: RunPlan, paths: TaskPaths, request: OneOffRequest): SandboxSpec {
  mkdirSync(paths.runDir, { recursive: true, mode: 0o755 });
  for (const dir of [paths.home, paths.copy]) {
    mkdirSync(dir, { mode: 0o755 });
    giveTree(dir, plan.user);
  }
  const spec = describeRun(context, plan, paths, request.name, []);
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
