// sandbox/native.ts: the bubblewrap backend. Starting it is preparing the directories of the run, then one spawn.
// Invariant: what is started is exactly what planLaunch printed; a sandbox whose set-up did not finish never ran the command.
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError } from '../protocol/errors.ts';
import type { SandboxSpec } from '../protocol/spec.ts';
import { signalNumber } from '../lib/process.ts';
import type { Backend, Sandbox, Stdio } from './backend.ts';
import { prlimitArgv, type LimitHost } from './limits.ts';
import { DESCRIPTORS, planLaunch, type Launch } from './native-launch.ts';
import { prepareRunDir } from './native-prepare.ts';
import { seccompFilter } from './seccomp.ts';

export interface NativeOptions {
  readonly runDir: string;
  readonly whiteout: string;
  readonly callerIsRoot: boolean;
  readonly owner: { readonly uid: number; readonly gid: number };
  readonly arch: 'x64' | 'arm64';
  readonly programs: { readonly bwrap: string; readonly setsid: string };
  readonly stage: string;
  readonly limitHost: LimitHost;
  readonly cgroup: { readonly files: readonly string[]; readonly prefix: readonly string[]; readonly env: Readonly<Record<string, string>> };
  /** Names the run in the environment of its processes, so that strays of a killed runner can be found. */
  readonly runMark: string;
}

export function createNative(options: NativeOptions): Backend {
  return {
    name: 'native',
    async start(spec, command, stdio) {
      const launch = planNative(options, spec, command, stdio);
      prepareRunDir(options, spec, launch);
      const filter = seccompFilter(options.arch, spec.kernel);
      return attach(spawnLaunch(options, launch, filter, stdio));
    },
  };
}

export function planNative(options: NativeOptions, spec: SandboxSpec, command: readonly string[], stdio: Pick<Stdio, 'terminal' | 'stdin'>): Launch {
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
    cgroupFiles: options.cgroup.files,
    prefix: options.cgroup.prefix,
    terminal: stdio.terminal !== null,
    stdinIsTerminal: stdio.terminal !== null && stdio.stdin === stdio.terminal,
  });
}

const SYSTEM_PATH = '/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin:/run/current-system/sw/bin';

function spawnLaunch(options: NativeOptions, launch: Launch, filter: Buffer, stdio: Stdio): ChildProcess {
  const [file = '', ...args] = launch.argv;
  const apart = stdio.terminal !== null && stdio.stdin !== stdio.terminal;
  const child = spawn(file, args, {
    // bwrap is PID 1 inside and its environment can be read there: nothing of the caller's may be in it.
    env: { PATH: SYSTEM_PATH, AGS_RUN: options.runMark, ...options.cgroup.env },
    cwd: '/',
    // A session of its own: Ctrl-C in the user's terminal must reach the command by our hand, not end bwrap.
    detached: true,
    stdio: [
      apart ? stdio.terminal : stdio.stdin,
      stdio.stdout,
      stdio.stderr,
      'pipe',
      'pipe',
      'pipe',
      ...(apart ? [stdio.stdin] : []),
    ],
  });
  feed(child, DESCRIPTORS.args, launch.bwrapArgs.map((arg) => `${arg}\0`).join(''));
  feed(child, DESCRIPTORS.seccomp, filter);
  return child;
}

function feed(child: ChildProcess, descriptor: number, data: string | Buffer): void {
  const pipe = (child.stdio as readonly unknown[])[descriptor] as NodeJS.WritableStream | undefined;
  // The launcher may die before it has read everything; its exit tells the story.
  pipe?.on('error', () => undefined);
  pipe?.end(data);
}

/** Resolves once bwrap has made its namespaces; rejects if it ends before that. */
function attach(child: ChildProcess): Promise<Sandbox> {
  return new Promise((resolve, reject) => {
    let status = '';
    let initPid = 0;
    let initTicks = '';
    let commandExit: number | null = null;
    const done = new Promise<number>((finish, fail) => {
      child.on('error', (error) => {
        const failure = new AgsError('backend.failed', `The sandbox launcher could not be started: ${error.message}`, { hint: 'Find out why with: ags doctor', cause: error });
        reject(failure);
        fail(failure);
      });
      child.on('close', (code, signal) => {
        const ended = commandExit ?? (initPid !== 0 && signal !== null ? 128 + signalNumber(signal) : null);
        if (ended !== null) return void gone(initPid, initTicks).then(() => finish(ended));
        const failure = new AgsError('backend.failed', `The sandbox could not be set up (${signal ?? `exit ${code}`}); the command was not run.`, { hint: 'The line above says what failed. See also: ags doctor' });
        reject(failure);
        fail(failure);
      });
    });
    // A failure before the start is reported by the outer promise alone.
    done.catch(() => undefined);
    const pipe = (child.stdio as readonly unknown[])[DESCRIPTORS.status] as NodeJS.ReadableStream | undefined;
    pipe?.on('data', (chunk: Buffer) => {
      status += chunk.toString('utf8');
      initPid = Number(/"child-pid":\s*(\d+)[\s,}]/.exec(status)?.[1] ?? initPid);
      if (initTicks === '') initTicks = statOf(initPid)?.startTicks ?? '';
      const exit = /"exit-code":\s*(\d+)[\s,}]/.exec(status)?.[1];
      if (exit !== undefined) commandExit = Number(exit);
      if (initPid !== 0) resolve({ initPid, stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, done, signal: (name) => void signalCommand(initPid, name), kill: () => killBoth(child, initPid, initTicks) });
    });
  });
}

// bwrap ends when the command does; the kernel takes a moment longer to end what else ran inside, and lets go of PID 1 last.
async function gone(initPid: number, startTicks: string): Promise<void> {
  for (let stat = statOf(initPid); stat !== null && stat.startTicks === startTicks && stat.state !== 'Z'; stat = statOf(initPid)) await sleep(1);
}

// PID 1 inside is bound to bwrap's life only at the end of its set-up: before that it would stay, and run the command.
function killBoth(child: ChildProcess, initPid: number, startTicks: string): void {
  if (statOf(initPid)?.startTicks === startTicks) process.kill(initPid, 'SIGKILL');
  child.kill('SIGKILL');
}

// PID 1 inside is bwrap's own init, which ignores signals; its only child at the start is the command.
async function signalCommand(initPid: number, name: NodeJS.Signals): Promise<void> {
  let command = firstChild(initPid);
  // bwrap reports the sandbox before it has made the command's process.
  for (; command === null && statOf(initPid) !== null; command = firstChild(initPid)) await sleep(2);
  if (command === null) return;
  // What a terminal sends goes to the whole job; what another process sends goes to the command alone.
  const toGroup = name === 'SIGINT' || name === 'SIGQUIT';
  try {
    process.kill(toGroup ? -(statOf(command)?.group ?? command) : command, name);
  } catch {
    // It has just ended.
  }
}

function firstChild(pid: number): number | null {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    return children[0] === undefined || children[0] === '' ? null : Number(children[0]);
  } catch {
    return null;
  }
}

function statOf(pid: number): { state: string; group: number; startTicks: string } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name of a program may hold spaces and brackets; the fields begin after the last closing one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', group: Number(fields[2]), startTicks: fields[19] ?? '' };
  } catch {
    return null;
  }
}
