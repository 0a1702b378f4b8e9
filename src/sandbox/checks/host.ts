// sandbox/checks/host.ts: what the native backend needs from this machine, or the sentence that says what is missing.
import { accessSync, constants, existsSync, lstatSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import { isWithin } from '../../lib/files.ts';
import type { Engine } from '../engine/engine.ts';
import { run } from '../../lib/process/process.ts';
import { chooseCgroup, type CgroupPlan } from '../watch/cgroup-plan.ts';
import type { LimitHost } from '../watch/limits.ts';
import { seccompArch } from '../spec/seccomp.ts';

export interface NativeHost {
  /** What builds sandboxes here; null: bubblewrap. */
  readonly engine: Engine | null;
  readonly arch: 'x64' | 'arm64';
  readonly programs: Readonly<Record<ProgramName, string>>;
  readonly cgroupPlan: CgroupPlan;
  readonly limitHost: LimitHost;
}

type ProgramName = 'bwrap' | 'perl' | 'unshare' | 'setsid' | 'prlimit';
const NEEDED: readonly ProgramName[] = ['bwrap', 'perl', 'unshare', 'setsid', 'prlimit'];
const PROGRAM_DIRS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/run/current-system/sw/bin'];

export async function inspectHost(input: {
  platform: string;
  nodeArch: string;
  uid: number;
  cacheDir: string;
  runtimeDir: string;
  memoryBytes: number;
  kernel: string;
  programDirs?: readonly string[];
  engine?: Engine | null;
}): Promise<NativeHost> {
  const engine = input.engine ?? null;
  const arch = seccompArch(input.nodeArch);
  if (input.platform !== 'linux' || arch === null) {
    throw new AgsError(
      'backend.unavailable',
      `The native sandbox needs Linux on x86_64 or arm64; this is ${input.platform} on ${input.nodeArch}.`,
      { hint: 'See what works here: ags doctor' },
    );
  }
  const programs = Object.fromEntries(NEEDED.map((name) => [name, findProgram(name, input.programDirs)]));
  const missing = NEEDED.filter((name) => programs[name] === null && (engine === null || name === 'perl'));
  if (missing.length > 0) throw programMissing(missing);
  const cgroupPlan = await planCgroup(input, engine);
  return {
    engine,
    arch,
    programs: Object.fromEntries(NEEDED.map((name) => [name, programs[name] ?? ''])) as Record<ProgramName, string>,
    cgroupPlan,
    limitHost: {
      memoryBytes: input.memoryBytes,
      // Without a user namespace of its own, the limit of processes that each process has would count all of the user's.
      kernel: engine === null || engine.rootless ? input.kernel : '0',
      procLimits: readFileSync('/proc/self/limits', 'utf8'),
      cgroup: cgroupPlan,
      prlimit: programs['prlimit'] ?? '/usr/bin/prlimit',
    },
  };
}

/** An engine of root's counts processes and memory by itself. One without root can, where the user's service manager can. */
async function planCgroup(
  input: { readonly uid: number; readonly runtimeDir: string; readonly cacheDir: string },
  engine: Engine | null,
): Promise<CgroupPlan> {
  if (engine !== null && !engine.rootless) return { kind: 'engine', holds: ['memory', 'pids', 'cpu'] };
  const chosen = await chooseCgroup({
    root: '/sys/fs/cgroup',
    uid: input.uid,
    self: readFileSync('/proc/self/cgroup', 'utf8'),
    runtimeDir: input.runtimeDir,
    cacheDir: input.cacheDir,
    bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
  });
  if (engine === null || chosen.kind === 'none') return chosen;
  return chosen.kind === 'scope'
    ? { kind: 'engine', holds: chosen.holds }
    : { kind: 'none', why: 'without a service manager of this user the engine cannot make one' };
}

/** Never looked up in the user's PATH, which may lead through a project. */
export function findProgram(name: string, dirs: readonly string[] = PROGRAM_DIRS): string | null {
  return dirs.map((dir) => join(dir, name)).find((path) => isExecutable(path)) ?? null;
}

export function programMissing(names: readonly string[]): AgsError {
  const packages = [
    ...new Set(names.map((name) => (name === 'bwrap' ? 'bubblewrap' : name === 'perl' ? 'perl' : 'util-linux'))),
  ];
  return new AgsError(
    'backend.unavailable',
    `The sandbox needs ${names.join(', ')}, which ${names.length === 1 ? 'is' : 'are'} not installed.`,
    { hint: `Install: ${installCommand(packages)}` },
  );
}

export function installCommand(packages: readonly string[]): string {
  const managers: readonly (readonly [string, string])[] = [
    ['apt-get', 'apt-get install -y'],
    ['dnf', 'dnf install -y'],
    ['pacman', 'pacman -S --noconfirm'],
    ['zypper', 'zypper install -y'],
    ['apk', 'apk add'],
  ];
  const found = managers.find(([program]) => findProgram(program) !== null)?.[1] ?? 'your package manager: install';
  return `sudo ${found} ${packages.join(' ')}`;
}

/** A directory of the system that root's launcher mounts over in its own namespace; none of the sandbox's sources may lie below it. */
export function chooseStage(sources: readonly string[]): string {
  const free = ['/mnt', '/media', '/srv', '/home', '/boot'].find(
    (dir) => existsSync(dir) && lstatSync(dir).isDirectory() && !sources.some((path) => isWithin(path, dir)),
  );
  if (free === undefined)
    throw new AgsError(
      'backend.failed',
      'No directory is left over which the sandbox could be staged (tried /mnt, /media, /srv, /home, /boot).',
    );
  return free;
}

/**
 * The character device 0:0 by which overlayfs marks a deletion. Any user may make this one device. Where it cannot be made (in
 * a container's own overlay, or before Linux 5.8) no overlay works either: a copy needs none, and preparing an overlay fails.
 */
export async function ensureWhiteout(stateDir: string): Promise<string> {
  const path = join(stateDir, 'whiteout');
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isCharacterDevice() === true && stat.rdev === 0) return path;
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  // Only what is wrong: another process may just have made the right one.
  if (stat !== undefined) rmSync(path, { force: true });
  await run(['mknod', path, 'c', '0', '0'], { env: { PATH: PROGRAM_DIRS.join(':') } });
  return path;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
