// sandbox/checks/host.ts: finds what a backend needs from this machine, or reports what is missing.
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import { isWithin } from '../../lib/files.ts';
import type { Engine } from '../engine/engine.ts';
import { run } from '../../lib/process/process.ts';
import { chooseCgroup, type CgroupPlan } from '../watch/cgroup-plan.ts';
import type { LimitHost } from '../watch/limits.ts';
import { seccompArch } from '../spec/seccomp.ts';
import { findProgram, programMissing } from '../programs.ts';
import { PROGRAM_DIRS } from '../programs.ts';

export interface NativeHost {
  /** The engine that builds sandboxes; null: bubblewrap. */
  readonly engine: Engine | null;
  readonly arch: 'x64' | 'arm64';
  readonly programs: Readonly<Record<ProgramName, string>>;
  readonly cgroupPlan: CgroupPlan;
  readonly limitHost: LimitHost;
}

type ProgramName = 'bwrap' | 'perl' | 'unshare' | 'setsid' | 'prlimit';
const NEEDED: readonly ProgramName[] = ['bwrap', 'perl', 'unshare', 'setsid', 'prlimit'];

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
      // Without its own user namespace, the per-process limit would count all processes of the user.
      kernel: engine === null || engine.rootless ? input.kernel : '0',
      procLimits: readFileSync('/proc/self/limits', 'utf8'),
      cgroup: cgroupPlan,
      prlimit: programs['prlimit'] ?? '/usr/bin/prlimit',
    },
  };
}

/** A rootful engine limits processes and memory itself. A rootless one can if the user's service manager can. */
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
    : { kind: 'none', why: 'the engine needs a service manager of this user to create one' };
}

/** A system directory that root's launcher mounts over in its own namespace; none of the sandbox's sources may lie below it. */
export function chooseStage(sources: readonly string[]): string {
  const free = ['/mnt', '/media', '/srv', '/home', '/boot'].find(
    (dir) => existsSync(dir) && lstatSync(dir).isDirectory() && !sources.some((path) => isWithin(path, dir)),
  );
  if (free === undefined)
    throw new AgsError(
      'backend.failed',
      'The sandbox needs an unused directory to mount over, and found none (tried /mnt, /media, /srv, /home, /boot).',
    );
  return free;
}

/**
 * The character device 0:0, with which overlayfs marks a deletion. Any user may create it. Where that fails (in a container's own
 * overlay, or before Linux 5.8) overlays do not work either: a copy needs none, and preparing an overlay fails.
 */
export async function ensureWhiteout(stateDir: string): Promise<string> {
  const path = join(stateDir, 'whiteout');
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isCharacterDevice() === true && stat.rdev === 0) return path;
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  // Only a wrong file is removed: another process may just have created the right one.
  if (stat !== undefined) rmSync(path, { force: true });
  await run(['mknod', path, 'c', '0', '0'], { env: { PATH: PROGRAM_DIRS.join(':') } });
  return path;
}
