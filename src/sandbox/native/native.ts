// sandbox/native/native.ts: the bubblewrap backend. A start prepares the directories of the run, then spawns one process.
// Invariant: the backend starts exactly what planLaunch returned; a sandbox with an incomplete set-up never runs the command.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { AgsError } from '../../protocol/errors.ts';
import type { SandboxSpec } from '../../protocol/spec.ts';
import type { Backend, Stdio } from '../backend.ts';
import { receiveListeners } from '../io/listeners.ts';
import { prlimitArgv, type LimitHost } from '../watch/limits.ts';
import { attach, feed, openStatus } from '../io/attach.ts';
import { DESCRIPTORS } from '../io/descriptors.ts';
import { planLaunch, type Launch } from './launch.ts';
import { prepareRunDir } from '../io/prepare-mounts.ts';
import { seccompFilter } from '../spec/seccomp.ts';
import { SYSTEM_PATH, streamList, withoutStrangers } from '../io/descriptors.ts';

export interface NativeOptions {
  readonly runDir: string;
  readonly whiteout: string;
  readonly callerIsRoot: boolean;
  readonly owner: { readonly uid: number; readonly gid: number };
  readonly arch: 'x64' | 'arm64';
  readonly programs: { readonly bwrap: string; readonly setsid: string };
  readonly stage: string;
  readonly limitHost: LimitHost;
  /** The caller may mount overlays here. */
  readonly overlays: boolean;
  /** The caller may create namespaces. */
  readonly namespaces: boolean;
  readonly cgroup: {
    readonly files: readonly string[];
    readonly prefix: readonly string[];
    readonly env: Readonly<Record<string, string>>;
  };
  /** Marks the run in the environment of its processes, so that orphans of a killed runner can be found. */
  readonly runMark: string;
}

export function createNative(options: NativeOptions): Backend {
  return {
    name: 'native',
    async start(spec, command, stdio, onListener) {
      const launch = planNative(options, spec, command, stdio);
      prepareRunDir(options, spec, launch);
      const status = openStatus(options.runDir);
      const child = spawnOrRefuse(() => spawnLaunch(options, launch, spec, stdio, status), status);
      return attach(child, status, receiveListeners(child, spec.network, onListener));
    },
  };
}

export function planNative(
  options: NativeOptions,
  spec: SandboxSpec,
  command: readonly string[],
  stdio: Pick<Stdio, 'terminal' | 'stdin'>,
): Launch {
  return planLaunch({
    spec,
    command,
    limitArgv: prlimitArgv(spec.limits, options.limitHost),
    runDir: options.runDir,
    callerIsRoot: options.callerIsRoot,
    owner: options.owner,
    bwrap: options.programs.bwrap,
    setsid: options.programs.setsid,
    arch: options.arch,
    stage: options.stage,
    overlays: options.overlays,
    namespaces: options.namespaces,
    cgroupFiles: options.cgroup.files,
    prefix: options.cgroup.prefix,
    terminal: stdio.terminal !== null,
    stdinIsTerminal: stdio.terminal !== null && stdio.stdin === stdio.terminal,
  });
}

// A command line that is too long fails here, before any process exists.
function spawnOrRefuse(start: () => ChildProcess, status: number): ChildProcess {
  try {
    return start();
  } catch (cause) {
    closeSync(status);
    throw new AgsError('backend.failed', `The sandbox launcher could not be started: ${(cause as Error).message}`, {
      hint: 'Is the command line too long? Put the command into a script.',
      cause,
    });
  }
}

function spawnLaunch(
  options: NativeOptions,
  launch: Launch,
  { kernel, network }: SandboxSpec,
  stdio: Stdio,
  status: number,
): ChildProcess {
  const [file = '', ...args] = launch.argv;
  const streams = streamList(stdio, status, network);
  const nothing = stdio.terminal === null ? null : openSync('/dev/null', 'r');
  const child = spawn(file, args, {
    // bwrap is PID 1 inside and its environment is readable there: it must contain nothing of the caller's.
    env: { PATH: SYSTEM_PATH, AGS_RUN: options.runMark, ...options.cgroup.env },
    cwd: '/',
    // In its own session: we pass Ctrl-C on to the command; it must not end bwrap.
    detached: true,
    stdio: nothing === null ? streams : withoutStrangers(streams, nothing),
  });
  if (nothing !== null) closeSync(nothing);
  feed(child, DESCRIPTORS.args, launch.bwrapArgs.map((arg) => `${arg}\0`).join(''));
  // Built while the launcher works: bwrap reads it last.
  feed(child, DESCRIPTORS.seccomp, seccompFilter(options.arch, kernel));
  return child;
}
