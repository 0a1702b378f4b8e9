// sandbox/native/native.ts: the bubblewrap backend. Starting it is preparing the directories of the run, then one spawn.
// Invariant: what is started is exactly what planLaunch printed; a sandbox whose set-up did not finish never ran the command.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { AgsError } from '../../protocol/errors.ts';
import type { SandboxSpec } from '../../protocol/spec.ts';
import { inheritedDescriptors } from '../../lib/process/inherited.ts';
import type { Backend, Stdio } from '../backend.ts';
import { receiveDoors } from '../io/listeners.ts';
import { prlimitArgv, type LimitHost } from '../watch/limits.ts';
import { attach, feed, openStatus } from '../io/attach.ts';
import { DESCRIPTORS, planLaunch, type Launch } from './launch.ts';
import { prepareRunDir } from '../io/prepare-mounts.ts';
import { seccompFilter } from '../spec/seccomp.ts';

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
  /** The caller may have namespaces of its own. */
  readonly namespaces: boolean;
  readonly cgroup: {
    readonly files: readonly string[];
    readonly prefix: readonly string[];
    readonly env: Readonly<Record<string, string>>;
  };
  /** Names the run in the environment of its processes, so that strays of a killed runner can be found. */
  readonly runMark: string;
}

export function createNative(options: NativeOptions): Backend {
  return {
    name: 'native',
    async start(spec, command, stdio, onDoor) {
      const launch = planNative(options, spec, command, stdio);
      prepareRunDir(options, spec, launch);
      const status = openStatus(options.runDir);
      const child = spawnOrRefuse(() => spawnLaunch(options, launch, spec, stdio, status), status);
      return attach(child, status, receiveDoors(child, spec.network, onDoor));
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

export const SYSTEM_PATH = '/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin:/run/current-system/sw/bin';

// A command line that is too long fails here, before there is any process.
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

export type StdioList = (number | 'pipe' | 'ignore' | 'ipc')[];

/** Of whatever starts a sandbox, in the order of DESCRIPTORS; Node's channel is the last. */
export function streamList(stdio: Stdio, status: number, network: SandboxSpec['network']): StdioList {
  const apart = stdio.terminal !== null && stdio.stdin !== stdio.terminal;
  return [
    apart ? stdio.terminal : stdio.stdin,
    stdio.stdout,
    stdio.stderr,
    'pipe',
    'pipe',
    status,
    'pipe',
    ...(apart ? [stdio.stdin] : []),
    ...(network.kind === 'gateway' ? (['ipc'] as const) : []),
  ];
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
    // bwrap is PID 1 inside and its environment can be read there: nothing of the caller's may be in it.
    env: { PATH: SYSTEM_PATH, AGS_RUN: options.runMark, ...options.cgroup.env },
    cwd: '/',
    // A session of its own: Ctrl-C in the user's terminal must reach the command by our hand, not end bwrap.
    detached: true,
    stdio: nothing === null ? streams : withoutStrangers(streams, nothing),
  });
  if (nothing !== null) closeSync(nothing);
  feed(child, DESCRIPTORS.args, launch.bwrapArgs.map((arg) => `${arg}\0`).join(''));
  // Made while the launcher is at work: bwrap asks for it last.
  feed(child, DESCRIPTORS.seccomp, seccompFilter(options.arch, kernel));
  return child;
}

// node-pty opens the master of a terminal without close-on-exec, and Node has no way to set it: the child would inherit it.
// A descriptor that is given as another one is not inherited as itself; "ignore" leaves a number above 2 as it is.
export function withoutStrangers(stdio: StdioList, nothing: number): StdioList {
  const all = [...stdio];
  for (const fd of inheritedDescriptors()) {
    if (fd < stdio.length) continue;
    while (all.length <= fd) all.push('ignore');
    all[fd] = nothing;
  }
  return all;
}
