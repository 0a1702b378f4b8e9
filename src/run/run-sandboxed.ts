// run/run-sandboxed.ts: the one place that starts a sandbox and stays with it to its end: control group, backend, streams, signals, limits
// and exit code. Commands, agents' turns, services, compose clients, one-off programs, inspections and the readiness test all use it.
// Invariant: when this returns, no process of the sandbox is left.
import { constants } from 'node:os';
import { existsSync, statfsSync } from 'node:fs';
import type { SandboxSpec } from '../protocol/spec.ts';
import { formatDuration, readableSize } from '../lib/units.ts';
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

export interface Signals extends Disposable {
  /** The first signal that came before there was a receiver. */
  readonly early: NodeJS.Signals | null;
  passTo(receiver: (name: NodeJS.Signals) => void): void;
}

/** Opens the streams of the command; called just before the sandbox starts. */
export type OpenStdio = () => Promise<{ stdio: Stdio; close(): Promise<void> }>;

export interface SandboxedRun {
  readonly context: HostContext;
  readonly plan: Pick<RunPlan, 'host' | 'overlays' | 'namespaces'>;
  readonly spec: SandboxSpec;
  readonly command: readonly string[];
  /** The backend keeps its own files here. */
  readonly runDir: string;
  /** Directories whose growth counts towards the disk limit; those that do not exist yet are left out. */
  readonly written: readonly string[];
  /** Marks its processes. */
  readonly id: string;
  /** Names its control group, if one process has several sandboxes with the same id. */
  readonly group?: string;
  /** Default: no input, and output as pipes. */
  readonly openStdio?: OpenStdio;
  /** Signals of the terminal, which are forwarded to the command. */
  readonly signals?: Signals;
  /** Ends the sandbox when it aborts. */
  readonly signal?: AbortSignal;
  readonly network?: { readonly onListener: OnListener; started?(sandbox: Sandbox): void };
  onStart?(sandbox: Sandbox): void;
}

export interface SandboxedEnd {
  readonly exitCode: number;
  /** Why it was stopped early, as a sentence. */
  readonly ended: string | null;
}

export async function runSandboxed(run: SandboxedRun): Promise<SandboxedEnd> {
  const { context, plan, id, spec, signals, signal } = run;
  const { cgroupPlan } = plan.host;
  await using cgroup = openCgroup(cgroupPlan, run.group ?? id, spec.limits);
  const backend = await openBackend(context, plan, spec, run.runDir, id, {
    files: cgroup.enterFiles,
    prefix: cgroup.prefix,
    env: cgroup.env,
  });
  const streams = await (run.openStdio ?? pipes)();
  let ended: string | null = null;
  try {
    const sandbox = await backend.start(spec, run.command, streams.stdio, run.network?.onListener);
    const kill = (): void => sandbox.kill();
    try {
      run.onStart?.(sandbox);
      run.network?.started?.(sandbox);
      const early = signals?.early ?? null;
      if (early !== null || signal?.aborted === true) kill();
      signals?.passTo((name) => sandbox.signal(name));
      signal?.addEventListener('abort', kill, { once: true });
      const end = (why: string): void => {
        ended = why;
        kill();
        cgroup.kill();
      };
      const watch = watchSoon(
        {
          initPid: sandbox.initPid,
          limits: spec.limits,
          watchMemory: cgroupPlan.kind === 'none' || !cgroupPlan.holds.includes('memory'),
          directories: run.written.filter((path) => existsSync(path)),
          mounts: spec.mounts,
          freeFloorBytes: freeFloor(statfsSync(run.runDir)),
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
      kill();
      await sandbox.done.catch(() => undefined);
      throw error;
    } finally {
      signal?.removeEventListener('abort', kill);
    }
  } finally {
    await streams.close();
  }
}

/** The directories of a task that its sandbox writes. */
export function writtenBy(
  { upper, home, copy, git }: Pick<TaskPaths, 'upper' | 'home' | 'copy' | 'git'>,
  { keptHome }: Pick<RunPlan, 'keptHome'> = {},
): string[] {
  return [upper, keptHome ?? home, copy, git];
}

/** Streams for a caller that writes the input. */
export const PIPED_INPUT: OpenStdio = async () => ({
  stdio: { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe', terminal: null },
  close: async () => undefined,
});

const pipes: OpenStdio = async () => ({
  stdio: { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', terminal: null },
  close: async () => undefined,
});

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
    ? `The kernel killed a process: together they used the ${readableSize(memoryBytes)} of memory allowed (limits.memory).`
    : "Stopped: the connection to the engine's machine was lost. Files written by then have been brought back.";
}

function describeBreach(breach: Breach): string {
  const show = (value: number): string =>
    breach.limit === 'time'
      ? formatDuration(Math.round(value))
      : breach.unit === 'bytes'
        ? readableSize(value)
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
