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
  /**
   * Decides whether RLIMIT_NPROC counts the sandbox alone: the kernel release, for example "6.1.0-18-amd64". "0", older than any, for an
   * engine as root: its containers have no user namespace of their own (checks/host.ts).
   */
  readonly kernel: string;
  /**
   * /proc/self/limits of ags. Without rights no process raises its hard limits, so a sandbox is given none above those of ags: prlimit
   * and engines would fail. A daemon as root could grant more, and is not asked for it.
   */
  readonly procLimits: string;
  readonly cgroup: CgroupPlan;
  /** Never searched in PATH, which may contain directories that the sandbox writes. */
  readonly prlimit?: string;
}

/** Prepended to the command inside the sandbox. One exec, no fork. */
export function prlimitArgv(limits: Limits, host: LimitHost): string[] {
  const hard = hardLimits(host.procLimits);
  const at = (name: Rlimit, wanted: number): string => {
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

/** Every limit, in the order in which people read them. A field of Limits without a row is a compile error. */
export function limitsInForce(limits: Limits, host: LimitHost): readonly LimitInForce[] {
  const rows: Readonly<Record<keyof Limits, Row>> = {
    processes: processesInForce(limits, host),
    memoryBytes: memoryInForce(limits, host),
    ...plainRows(limits, host),
    cpus: cpusInForce(limits.cpus, host.cgroup),
  };
  return (Object.keys(rows) as (keyof Limits)[]).map((name) => ({ name, ...rows[name] }));
}

type Row = Omit<LimitInForce, 'name'>;

export function holds(plan: CgroupPlan, controller: Controller): boolean {
  return plan.kind !== 'none' && plan.holds.includes(controller);
}

/** Keeps the machine usable: a twentieth of the disk, at most 2 GiB, stays free. */
export function freeFloor(disk: { readonly blocks: number; readonly bsize: number }): number {
  return Math.min(2 * 1024 ** 3, (disk.blocks * disk.bsize) / 20);
}

function processesInForce({ processes: allowed }: Limits, host: LimitHost): Row {
  if (countsPerSandbox(host.kernel))
    return { allowed, held: 'kernel', means: `${allowed} processes and threads, RLIMIT_NPROC inside` };
  if (holds(host.cgroup, 'pids'))
    return { allowed, held: 'kernel', means: `${allowed} processes and threads, ${cgroupWords(host.cgroup)}` };
  return {
    allowed,
    held: 'no',
    means: 'processes are not limited: Linux before 5.14 cannot count them per sandbox, and there is no cgroup',
  };
}

function memoryInForce(limits: Limits, host: LimitHost): Row {
  const allowed = limits.memoryBytes;
  const size = formatSize(allowed);
  if (holds(host.cgroup, 'memory'))
    return { allowed, held: 'kernel', means: `${size} for all processes together, ${cgroupWords(host.cgroup)}` };
  const each = formatSize(dataBytes(limits, host));
  const why = host.cgroup.kind === 'none' ? host.cgroup.why : 'the cgroup has no memory controller';
  return {
    allowed,
    held: 'watched',
    means: `${size} for all processes together, and RLIMIT_DATA ${each} for each one (${why})`,
  };
}

function plainRows(limits: Limits, host: LimitHost): Record<Exclude<keyof Limits, Counted>, Row> {
  const { fileBytes, diskBytes, tmpBytes, cpuSeconds, wallSeconds } = limits;
  const openFiles = Math.min(limits.openFiles, hardLimits(host.procLimits).nofile);
  return {
    openFiles: { allowed: openFiles, held: 'kernel', means: `${openFiles} open files per process` },
    fileBytes: { allowed: fileBytes, held: 'kernel', means: `${formatSize(fileBytes)} per file` },
    diskBytes: { allowed: diskBytes, held: 'watched', means: `${formatSize(diskBytes)} written in workspace and home` },
    tmpBytes: { allowed: tmpBytes, held: 'kernel', means: `${formatSize(tmpBytes)} in /tmp` },
    cpuSeconds:
      cpuSeconds === null
        ? { allowed: null, held: 'no', means: 'CPU time is not limited' }
        : { allowed: cpuSeconds, held: 'kernel', means: `${cpuSeconds} s of CPU time per process` },
    wallSeconds:
      wallSeconds === null
        ? { allowed: null, held: 'no', means: 'run time is not limited' }
        : { allowed: wallSeconds, held: 'watched', means: `${wallSeconds} s from start to end` },
  };
}

/** What a cgroup can hold. */
type Counted = 'processes' | 'memoryBytes' | 'cpus';

function cpusInForce(allowed: number | null, cgroup: CgroupPlan): Row {
  if (allowed === null) return { allowed, held: 'no', means: 'all processors may be used' };
  return holds(cgroup, 'cpu')
    ? { allowed, held: 'kernel', means: `${allowed} processors, ${cgroupWords(cgroup)}` }
    : { allowed, held: 'no', means: 'processors are not limited: no cgroup here can do it' };
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

/** The limits of each process, as prlimit names them, and their rows in /proc/self/limits, by which they are proven (checks/evidence.ts). */
export const RLIMITS = {
  core: 'Max core file size',
  nofile: 'Max open files',
  fsize: 'Max file size',
  nproc: 'Max processes',
  data: 'Max data size',
  cpu: 'Max cpu time',
} as const;
type Rlimit = keyof typeof RLIMITS;

function hardLimits(procLimits: string): Record<Rlimit, number> {
  const of = (row: string): number => {
    const line = procLimits.split('\n').find((candidate) => candidate.startsWith(`${row} `));
    const value = line?.slice(row.length).trim().split(/\s+/)[1];
    return value === undefined || value === 'unlimited' ? Number.POSITIVE_INFINITY : Number(value);
  };
  return {
    core: of(RLIMITS.core),
    nofile: of(RLIMITS.nofile),
    fsize: of(RLIMITS.fsize),
    nproc: of(RLIMITS.nproc),
    data: of(RLIMITS.data),
    cpu: of(RLIMITS.cpu),
  };
}
