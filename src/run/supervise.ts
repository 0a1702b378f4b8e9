// run/supervise.ts: starts a sandbox in its control group and supervises it: forwards signals, watches limits, returns the exit code.
// Invariant: when this returns, no process of the sandbox is left.
import { constants } from 'node:os';
import { existsSync, statfsSync } from 'node:fs';
import type { SandboxSpec } from '../protocol/spec.ts';
import { formatDuration, formatSize } from '../lib/units.ts';
import type { OnListener, Sandbox, Stdio } from '../sandbox/backend.ts';
import { openCgroup } from '../sandbox/watch/cgroup.ts';
import type { Breach, Watch, WatchInput } from '../sandbox/watch/governor.ts';
import { freeFloor } from '../sandbox/watch/limits.ts';
import type { TaskPaths } from '../store/layout.ts';
import { openBackend } from './open-backend.ts';
import type { RunPlan } from './run-plan.ts';
import type { HostContext } from './host-context.ts';

// SIGKILL cannot be forwarded; bwrap's die-with-parent covers it.
const FORWARDED: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];

/** From here on no signal ends ags half-way or is lost: before the start it is remembered, afterwards forwarded. */
export function catchSignals(): Signals {
  let to: ((name: NodeJS.Signals) => void) | null = null;
  let early: NodeJS.Signals | null = null;
  const caught = (name: NodeJS.Signals): void => {
    if (to === null) early ??= name;
    else to(name);
  };
  for (const name of FORWARDED) process.on(name, caught);
  return {
    get early() {
      return early;
    },
    passTo: (receiver) => void (to = receiver),
    [Symbol.dispose]() {
      for (const name of FORWARDED) process.off(name, caught);
    },
  };
}

/** For a process that is stopped in another way. */
export const NO_SIGNALS: Signals = { early: null, passTo: () => undefined, [Symbol.dispose]: () => undefined };

export interface Signals extends Disposable {
  /** The first signal that came before there was a receiver. */
  readonly early: NodeJS.Signals | null;
  passTo(receiver: (name: NodeJS.Signals) => void): void;
}

/** Opens the streams of the command; called just before the sandbox starts. */
export type OpenStdio = () => Promise<{ stdio: Stdio; close(): Promise<void> }>;

export async function supervise(input: {
  context: HostContext;
  request: { readonly command: readonly string[]; readonly openStdio: OpenStdio };
  spec: SandboxSpec;
  paths: Pick<TaskPaths, 'root' | 'runDir' | 'upper' | 'home' | 'copy' | 'git'>;
  plan: Pick<RunPlan, 'host' | 'overlays' | 'namespaces'>;
  /** Marks its processes. */
  id: string;
  /** Names its control group, if one process has several sandboxes with the same id. */
  group?: string;
  signals: Signals;
  network: { onListener: OnListener; started(sandbox: Sandbox): void };
  onStart(sandbox: Sandbox): void;
}): Promise<{ exitCode: number; ended: string | null }> {
  const { context, plan, id, spec, paths, signals } = input;
  const { cgroupPlan } = plan.host;
  await using cgroup = openCgroup(cgroupPlan, input.group ?? id, spec.limits);
  const backend = await openBackend(context, plan, spec, paths.runDir, id, {
    files: cgroup.enterFiles,
    prefix: cgroup.prefix,
    env: cgroup.env,
  });
  const terminal = await input.request.openStdio();
  let ended: string | null = null;
  try {
    const { command } = input.request;
    const sandbox = await backend.start(spec, command, terminal.stdio, input.network.onListener);
    try {
      input.onStart(sandbox);
      input.network.started(sandbox);
      const { early } = signals;
      if (early !== null) sandbox.kill();
      signals.passTo((name) => sandbox.signal(name));
      const end = (why: string): void => {
        ended = why;
        sandbox.kill();
        cgroup.kill();
      };
      const watch = watchSoon(
        {
          initPid: sandbox.initPid,
          limits: spec.limits,
          watchMemory: cgroupPlan.kind === 'none' || !cgroupPlan.holds.includes('memory'),
          directories: [paths.upper, paths.home, paths.copy, paths.git].filter((path) => existsSync(path)),
          mounts: spec.mounts,
          freeFloorBytes: freeFloor(statfsSync(paths.root)),
          onBreach: (breach) => end(describeBreach(breach)),
        },
        (error) => end(`Stopped: its limits could not be watched (${(error as Error).message}).`),
      );
      const exitCode = await sandbox.done.finally(() => watch.stop());
      const cut = sandbox.cutShort() ?? ((cgroup.stats()?.oomKills ?? 0) > 0 ? 'memory' : null);
      return {
        exitCode: early === null ? exitCode : 128 + (constants.signals[early] ?? 15),
        ended: ended ?? (cut === null ? null : describeCut(cut, spec.limits)),
      };
    } catch (error) {
      // The caller will not wait for the sandbox after an error.
      sandbox.kill();
      await sandbox.done.catch(() => undefined);
      throw error;
    }
  } finally {
    await terminal.close();
  }
}

// Most commands end before the first check is due, and need not load the governor.
const FIRST_LOOK_MS = 150;

function watchSoon(input: WatchInput, onBlind: (error: unknown) => void): { stop(): void } {
  let watch: Watch | null = null;
  let stopped = false;
  const begin = async (): Promise<void> => {
    const { watchSandbox } = await import('../sandbox/watch/governor.ts');
    if (!stopped) watch = watchSandbox(input);
  };
  const timer = setTimeout(() => void begin().catch(onBlind), FIRST_LOOK_MS).unref();
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
      watch?.stop();
    },
  };
}

function describeCut(cut: 'memory' | 'connection', { memoryBytes }: SandboxSpec['limits']): string {
  return cut === 'memory'
    ? `The kernel killed a process: together they used the ${formatSize(memoryBytes)} of memory allowed (limits.memory).`
    : "Stopped: the connection to the engine's machine was lost. Files written by then have been brought back.";
}

function describeBreach(breach: Breach): string {
  const show = (value: number): string =>
    breach.limit === 'time'
      ? formatDuration(Math.round(value))
      : breach.unit === 'bytes'
        ? formatSize(value)
        : `${value} files`;
  switch (breach.limit) {
    case 'memory':
      return `Stopped: it used ${show(breach.used)} of memory, the limit is ${show(breach.allowed)} (limits.memory).`;
    case 'disk':
      return `Stopped: it wrote ${show(breach.used)}, the limit is ${show(breach.allowed)} (limits.disk).`;
    case 'time':
      return `Stopped: time limit of ${show(breach.allowed)} reached (limits.time).`;
    case 'free-space':
      return `Stopped: the disk is nearly full (${show(breach.used)} free, ${show(breach.allowed)} are kept free).`;
  }
}
