// sandbox/native.ts: the bubblewrap backend. Starting it is preparing the directories of the run, then one spawn.
// Invariant: what is started is exactly what planLaunch printed; a sandbox whose set-up did not finish never ran the command.
import { spawn, type ChildProcess } from 'node:child_process';
import { Writable } from 'node:stream';
import { closeSync, openSync, readdirSync, readFileSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
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
  /** The caller may mount overlays here. */
  readonly overlays: boolean;
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
    async start(spec, command, stdio) {
      const launch = planNative(options, spec, command, stdio);
      prepareRunDir(options, spec, launch);
      const filter = seccompFilter(options.arch, spec.kernel);
      const status = openStatus(options.runDir);
      return attach(
        spawnOrRefuse(() => spawnLaunch(options, launch, filter, stdio, status), status),
        status,
      );
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
    cgroupFiles: options.cgroup.files,
    prefix: options.cgroup.prefix,
    terminal: stdio.terminal !== null,
    stdinIsTerminal: stdio.terminal !== null && stdio.stdin === stdio.terminal,
  });
}

const SYSTEM_PATH = '/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin:/run/current-system/sw/bin';

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

type StdioList = (number | 'pipe' | 'ignore')[];

function spawnLaunch(
  options: NativeOptions,
  launch: Launch,
  filter: Buffer,
  stdio: Stdio,
  status: number,
): ChildProcess {
  const [file = '', ...args] = launch.argv;
  const apart = stdio.terminal !== null && stdio.stdin !== stdio.terminal;
  const streams: StdioList = [
    apart ? stdio.terminal : stdio.stdin,
    stdio.stdout,
    stdio.stderr,
    'pipe',
    'pipe',
    status,
    'pipe',
    ...(apart ? [stdio.stdin] : []),
  ];
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
  feed(child, DESCRIPTORS.seccomp, filter);
  return child;
}

// node-pty opens the master of a terminal without close-on-exec, and Node has no way to set it: the child would inherit it.
// A descriptor that is given as another one is not inherited as itself; "ignore" leaves a number above 2 as it is.
function withoutStrangers(stdio: StdioList, nothing: number): StdioList {
  const all = [...stdio];
  for (const fd of readdirSync('/proc/self/fd').map(Number)) {
    if (fd < stdio.length || closesOnExec(fd)) continue;
    while (all.length <= fd) all.push('ignore');
    all[fd] = nothing;
  }
  return all;
}

function closesOnExec(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '';
    return (Number.parseInt(flags, 8) & 0o2000000) !== 0;
  } catch {
    // The descriptor of the listing itself.
    return true;
  }
}

/** With a terminal, the input of the command is a descriptor of its own. */
function inputOf(child: ChildProcess): Writable | null {
  const apart = (child.stdio as readonly unknown[])[DESCRIPTORS.stdin];
  return apart instanceof Writable ? apart : child.stdin;
}

function feed(child: ChildProcess, descriptor: number, data: string | Buffer): void {
  const pipe = (child.stdio as readonly unknown[])[descriptor] as NodeJS.WritableStream | undefined;
  // The launcher may die before it has read everything; its exit tells the story.
  pipe?.on('error', () => undefined);
  pipe?.end(data);
}

/**
 * Where bwrap reports: a file, because a bwrap that could not report to us any more would die and leave the half-made
 * sandbox behind, waiting for ever.
 */
function openStatus(runDir: string): number {
  const path = join(runDir, `status-${process.pid}`);
  const fd = openSync(path, 'w+', 0o600);
  unlinkSync(path);
  // Room for what it will say is taken now, while a full disk is an error that can be told.
  const room = Buffer.alloc(STATUS_BYTES, ' ');
  for (let at = 0; at < room.length;) at += writeSync(fd, room, at, room.length - at, at);
  return fd;
}

const STATUS_BYTES = 1024;

/** Making namespaces and mounts takes milliseconds; on a machine that is out of breath, seconds. */
const ANSWER_S = 20;

interface Init {
  readonly pid: number;
  /** With the pid it names one process for ever. */
  readonly startTicks: string;
}

/** Resolves once bwrap has made its namespaces; rejects if it ends before that. */
function attach(child: ChildProcess, status: number): Promise<Sandbox> {
  return new Promise((resolve, reject) => {
    let init: Init | null = null;
    let suspect: Init | null = null;
    let ended = false;
    let killed = false;
    let unfiltered: number | null = null;
    let failure: AgsError | null = null;
    let late: NodeJS.Timeout | undefined;
    const sent = new Set<number>();
    const done = new Promise<number>((finish, fail) => {
      child.on('error', (error) => {
        ended = true;
        const failure = new AgsError('backend.failed', `The sandbox launcher could not be started: ${error.message}`, {
          hint: 'Find out why with: ags doctor',
          cause: error,
        });
        reject(failure);
        fail(failure);
      });
      child.on('exit', () => {
        // A bwrap that ends in the middle of its set-up leaves a child that waits for its word for ever.
        const left = init ?? suspect;
        if (left !== null) killExactly(left);
        // What it said may still be on its way; whoever else is left after that waits for nothing.
        if (init === null) late = setTimeout(() => killGroup(child), LATE_MS);
      });
      child.on('close', (code, signal) => {
        ended = true;
        clearTimeout(late);
        const report = readStatus(status);
        closeSync(status);
        if (failure !== null) return void fail(failure);
        const died = killed ? 'SIGKILL' : signal;
        const exitCode =
          report.exitCode ??
          (report.initPid !== null && died !== null ? 128 + signalNumber(died) : null) ??
          // It was ended by a signal of ours before bwrap could say that it had begun.
          (code !== null && sent.has(code - 128) ? code : null);
        if (exitCode !== null) return void gone(init).then(() => finish(exitCode));
        const broken = new AgsError(
          'backend.failed',
          `The sandbox could not be set up (${signal ?? `exit ${code}`}); the command was not run.`,
          { hint: 'The line above says what failed. See also: ags doctor' },
        );
        reject(broken);
        fail(broken);
      });
    });
    // A failure before the start is reported by the outer promise alone.
    done.catch(() => undefined);
    // Not performance.now(), which has to be loaded first and takes as long as a program to start.
    const begun = process.uptime();
    const look = (): void => {
      if (ended) return;
      if (init === null && process.uptime() - begun > ANSWER_S) {
        killGroup(child);
        return reject(
          new AgsError('backend.unprotected', `bwrap did not answer in ${ANSWER_S} seconds; the command was not run.`, {
            hint: 'Is the machine busy, or a file system not reachable? See also: ags doctor',
          }),
        );
      }
      const pid = init === null ? readStatus(status).initPid : null;
      if (init === null) suspect = identify(firstChild(child.pid ?? 0)) ?? suspect;
      if (pid !== null) {
        const found = identify(pid) ?? { pid, startTicks: '' };
        init = found;
        resolve({
          initPid: pid,
          stdin: inputOf(child),
          stdout: child.stdout,
          stderr: child.stderr,
          done,
          signal(name) {
            sent.add(signalNumber(name));
            void signalCommand(pid, name);
          },
          kill() {
            killed = true;
            killBoth(child, found);
          },
        });
      }
      if (init !== null && isFiltered(init.pid)) return feed(child, DESCRIPTORS.go, '\n');
      if (init !== null && waits(init.pid)) unfiltered ??= process.uptime();
      if (init === null || unfiltered === null || process.uptime() - unfiltered < SURE_S) setTimeout(look, 1);
      else {
        failure = new AgsError(
          'backend.unprotected',
          'The first process of the sandbox took no system call filter; the command was not run.',
          { hint: 'Is bwrap the program of your distribution? See: ags doctor' },
        );
        killBoth(child, init);
        killGroup(child);
      }
    };
    look();
  });
}

/** The sandbox's PID 1, and the exit code if the command was really started. */
function readStatus(status: number): { initPid: number | null; exitCode: number | null } {
  const bytes = Buffer.alloc(STATUS_BYTES);
  const text = bytes.toString('latin1', 0, readSync(status, bytes, 0, bytes.length, 0));
  const number = (name: string): number | null => {
    const digits = new RegExp(`"${name}":\\s*(\\d+)[\\s,}]`).exec(text)?.[1];
    return digits === undefined ? null : Number(digits);
  };
  return { initPid: number('child-pid'), exitCode: number('exit-code') };
}

// bwrap reports when its own life is bound to ours. PID 1 inside binds its life to bwrap's, and then takes the filter.
function isFiltered(initPid: number): boolean {
  try {
    return /^Seccomp:\s*2/m.test(readFileSync(`/proc/${initPid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** It has started the command's process and sleeps until that ends: whatever it was to take by now, it has. */
function waits(initPid: number): boolean {
  return firstChild(initPid) !== null && statOf(initPid)?.state === 'S';
}

const SURE_S = 1;
const LATE_MS = 5000;

// bwrap ends when the command does; the kernel takes a moment longer to end what else ran inside, and lets go of PID 1 last.
async function gone(init: Init | null): Promise<void> {
  if (init === null) return;
  for (
    let stat = statOf(init.pid);
    stat !== null && stat.startTicks === init.startTicks && stat.state !== 'Z';
    stat = statOf(init.pid)
  )
    await sleep(1);
}

// PID 1 inside is bound to bwrap's life only at the end of its set-up: before that it would stay, and run the command.
function killBoth(child: ChildProcess, init: Init): void {
  killExactly(init);
  child.kill('SIGKILL');
}

/** The launcher has a process group of its own. */
function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Nobody is left in it.
  }
}

function killExactly({ pid, startTicks }: Init): void {
  if (statOf(pid)?.startTicks !== startTicks) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}

function identify(pid: number | null): Init | null {
  const startTicks = pid === null ? undefined : statOf(pid)?.startTicks;
  return pid === null || startTicks === undefined ? null : { pid, startTicks };
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
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of a program may hold spaces and brackets; the fields begin after the last closing one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', group: Number(fields[2]), startTicks: fields[19] ?? '' };
  } catch {
    return null;
  }
}
