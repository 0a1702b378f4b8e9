// sandbox/watch/limits.ts: the limits of a sandbox as a prlimit command, and as text that says what enforces each limit.
// Invariant: the text never claims more than is set. A limit that nothing enforces is shown as not enforced.
//
// Measured behaviour of the kernel's per-process limits:
// - RLIMIT_NPROC, set inside the user namespace, counts that namespace alone (Linux 5.14 and newer). Set outside, or on an older kernel,
//   it counts every process of the user, and the user's desktop would use up the sandbox's share.
// - RLIMIT_DATA stops a process that allocates faster than the watcher measures. It counts private writable memory, touched or not. Node,
//   Python, Rust and Go reserve memory without write access and stay far below it. A JVM commits heap ahead of use, up to a quarter of
//   the machine's memory: with 2 or 3 GiB allowed on a machine of 24 GiB a small program dies, so that quarter is added. AddressSanitizer
//   maps terabytes of writable shadow memory and cannot start under any RLIMIT_DATA; SBCL and similar programs need their whole heap to
//   fit. The limit is not set where a cgroup limits memory.
// - RLIMIT_AS is never set: Node and WebAssembly reserve far more address space than they use.
import { formatSize } from '../../lib/units.ts';
import type { Limits } from '../../protocol/spec.ts';
import type { CgroupPlan, Controller } from './cgroup-plan.ts';

export interface LimitHost {
  /** Physical memory of the machine. */
  readonly memoryBytes: number;
  /** Kernel release, for example "6.1.0-18-amd64". */
  readonly kernel: string;
  /** The content of /proc/self/limits. A process cannot raise its hard limits, so ours are the upper bound. */
  readonly procLimits: string;
  readonly cgroup: CgroupPlan;
  /** Never searched in PATH, which may contain directories that the sandbox writes. */
  readonly prlimit?: string;
}

/** Prepended to the command inside the sandbox. One exec, no fork. */
export function prlimitArgv(limits: Limits, host: LimitHost): string[] {
  const hard = hardLimits(host.procLimits);
  const at = (name: keyof typeof ROWS, wanted: number): string => {
    const value = Math.min(wanted, hard[name]);
    // The soft limit sends a signal that a program can handle; the hard limit, seconds later, kills.
    return name === 'cpu' ? `--cpu=${value}:${Math.min(wanted + 5, hard.cpu)}` : `--${name}=${value}`;
  };
  return [
    host.prlimit ?? '/usr/bin/prlimit',
    // 1 prevents both core files and a host program that would receive the memory of a crashed process; 0 prevents only the file.
    at('core', 1),
    at('nofile', limits.openFiles),
    at('fsize', limits.fileBytes),
    ...(countsPerSandbox(host.kernel) ? [at('nproc', limits.processes)] : []),
    ...(holds(host.cgroup, 'memory') ? [] : [at('data', dataBytes(limits, host))]),
    ...(limits.cpuSeconds === null ? [] : [at('cpu', limits.cpuSeconds)]),
    '--',
  ];
}

/** For an engine that would otherwise request more processes than it may have itself. */
export function grantableArgv(limits: Limits, host: LimitHost, pidMax: number): string[] {
  const argv = prlimitArgv(limits, host);
  return countsPerSandbox(host.kernel)
    ? argv
    : [...argv, `--nproc=${Math.min(pidMax, hardLimits(host.procLimits).nproc)}`];
}

export interface LimitInForce {
  readonly name: keyof Limits;
  readonly allowed: number | null;
  /** "kernel": enforced by the kernel. "watched": measured several times a second; the sandbox is stopped when it is exceeded. */
  readonly held: 'kernel' | 'watched' | 'no';
  /** Part of a sentence for people: the limit and what enforces it. */
  readonly means: string;
}

export function limitsInForce(limits: Limits, host: LimitHost): readonly LimitInForce[] {
  return [processesInForce(limits, host), memoryInForce(limits, host), ...plainRows(limits, host)];
}

export function holds(plan: CgroupPlan, controller: Controller): boolean {
  return plan.kind !== 'none' && plan.holds.includes(controller);
}

/** Keeps the machine usable: a twentieth of the disk, at most 2 GiB, stays free. */
export function freeFloor(disk: { readonly blocks: number; readonly bsize: number }): number {
  return Math.min(2 * 1024 ** 3, (disk.blocks * disk.bsize) / 20);
}

function processesInForce(limits: Limits, host: LimitHost): LimitInForce {
  const allowed = limits.processes;
  const base = { name: 'processes', allowed } as const;
  if (countsPerSandbox(host.kernel))
    return { ...base, held: 'kernel', means: `${allowed} processes and threads, RLIMIT_NPROC inside` };
  if (holds(host.cgroup, 'pids'))
    return { ...base, held: 'kernel', means: `${allowed} processes and threads, ${cgroupWords(host.cgroup)}` };
  return {
    ...base,
    held: 'no',
    means: 'processes are not limited: Linux before 5.14 cannot count them per sandbox, and there is no cgroup',
  };
}

function memoryInForce(limits: Limits, host: LimitHost): LimitInForce {
  const base = { name: 'memoryBytes', allowed: limits.memoryBytes } as const;
  const size = formatSize(limits.memoryBytes);
  if (holds(host.cgroup, 'memory'))
    return { ...base, held: 'kernel', means: `${size} for all processes together, ${cgroupWords(host.cgroup)}` };
  const each = formatSize(dataBytes(limits, host));
  const why = host.cgroup.kind === 'none' ? host.cgroup.why : 'the cgroup has no memory controller';
  return {
    ...base,
    held: 'watched',
    means: `${size} for all processes together, and RLIMIT_DATA ${each} for each one (${why})`,
  };
}

function plainRows(limits: Limits, host: LimitHost): LimitInForce[] {
  const hard = hardLimits(host.procLimits);
  const openFiles = Math.min(limits.openFiles, hard.nofile);
  const { fileBytes, diskBytes, tmpBytes, cpuSeconds, wallSeconds, cpus } = limits;
  return [
    { name: 'openFiles', allowed: openFiles, held: 'kernel', means: `${openFiles} open files per process` },
    { name: 'fileBytes', allowed: fileBytes, held: 'kernel', means: `${formatSize(fileBytes)} per file` },
    {
      name: 'diskBytes',
      allowed: diskBytes,
      held: 'watched',
      means: `${formatSize(diskBytes)} written in workspace and home`,
    },
    { name: 'tmpBytes', allowed: tmpBytes, held: 'kernel', means: `${formatSize(tmpBytes)} in /tmp` },
    cpuSeconds === null
      ? { name: 'cpuSeconds', allowed: null, held: 'no', means: 'CPU time is not limited' }
      : { name: 'cpuSeconds', allowed: cpuSeconds, held: 'kernel', means: `${cpuSeconds} s of CPU time per process` },
    wallSeconds === null
      ? { name: 'wallSeconds', allowed: null, held: 'no', means: 'run time is not limited' }
      : { name: 'wallSeconds', allowed: wallSeconds, held: 'watched', means: `${wallSeconds} s from start to end` },
    cpusInForce(cpus, host.cgroup),
  ];
}

function cpusInForce(allowed: number | null, cgroup: CgroupPlan): LimitInForce {
  if (allowed === null) return { name: 'cpus', allowed, held: 'no', means: 'all processors may be used' };
  return holds(cgroup, 'cpu')
    ? { name: 'cpus', allowed, held: 'kernel', means: `${allowed} processors, ${cgroupWords(cgroup)}` }
    : { name: 'cpus', allowed, held: 'no', means: 'processors are not limited: no cgroup here can do it' };
}

function cgroupWords(plan: CgroupPlan): string {
  switch (plan.kind) {
    case 'v2':
      return 'cgroup v2';
    case 'v1':
      return 'cgroup v1';
    case 'scope':
      return 'systemd scope';
    case 'engine':
      return 'cgroup of the engine';
    case 'none':
      return 'no cgroup';
  }
}

function dataBytes(limits: Limits, host: LimitHost): number {
  return limits.memoryBytes + Math.floor(host.memoryBytes / 4);
}

function countsPerSandbox(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10));
  return major > 5 || (major === 5 && minor >= 14);
}

const ROWS = {
  core: 'Max core file size',
  nofile: 'Max open files',
  fsize: 'Max file size',
  nproc: 'Max processes',
  data: 'Max data size',
  cpu: 'Max cpu time',
} as const;

function hardLimits(procLimits: string): Record<keyof typeof ROWS, number> {
  const of = (row: string): number => {
    const line = procLimits.split('\n').find((candidate) => candidate.startsWith(`${row} `));
    const value = line?.slice(row.length).trim().split(/\s+/)[1];
    return value === undefined || value === 'unlimited' ? Number.POSITIVE_INFINITY : Number(value);
  };
  return {
    core: of(ROWS.core),
    nofile: of(ROWS.nofile),
    fsize: of(ROWS.fsize),
    nproc: of(ROWS.nproc),
    data: of(ROWS.data),
    cpu: of(ROWS.cpu),
  };
}
