// sandbox/watch/cgroup-plan.ts: choose the cgroup, if any, that can limit a sandbox's memory and processes here.
// Invariant: a sandbox never leaves a limit that applies to its launcher. Its group is created below the launcher's own, or next to it
// when no group on the way up has a memory limit. Choosing writes nothing but a cache file, and starts a program only when the cached
// answer about systemd is from an earlier boot: this code runs before every command.
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { run } from '../../lib/process/process.ts';

export type Controller = 'memory' | 'pids' | 'cpu';

export type CgroupPlan =
  | {
      readonly kind: 'v2';
      readonly parent: string;
      readonly holds: readonly Controller[];
      /** Controllers that the parent has but does not pass on yet. Not empty only for the true root. */
      readonly enable: readonly Controller[];
      /** The lowest process limit among the groups passed on the way up. */
      readonly processesAtMost: number | null;
    }
  | {
      readonly kind: 'v1';
      readonly parents: Readonly<Partial<Record<Controller, string>>>;
      readonly holds: readonly Controller[];
    }
  | {
      readonly kind: 'scope';
      readonly systemdRun: string;
      /** The directory in which the user's service manager creates scopes. */
      readonly slice: string;
      /** The group of that service manager, above the slice. */
      readonly manager: string;
      readonly runtimeDir: string;
      readonly holds: readonly Controller[];
    }
  /** The container engine creates a group for each sandbox. */
  | { readonly kind: 'engine'; readonly holds: readonly Controller[] }
  | { readonly kind: 'none'; readonly why: string };

export interface CgroupInput {
  /** The mount point of cgroups: /sys/fs/cgroup. */
  readonly root: string;
  readonly uid: number;
  /** The content of /proc/self/cgroup. */
  readonly self: string;
  /** XDG_RUNTIME_DIR, or /run/user/<uid>. */
  readonly runtimeDir: string;
  /** One small cache file is written here. */
  readonly cacheDir: string;
  /** The content of /proc/sys/kernel/random/boot_id. */
  readonly bootId: string;
  readonly systemdRun?: string;
}

export async function chooseCgroup(input: CgroupInput): Promise<CgroupPlan> {
  const { root } = input;
  const groups = groupsOf(input.self);
  if (!existsSync(join(root, 'cgroup.controllers'))) return chooseV1(root, groups);
  const direct = chooseV2(root, groups.get('') ?? '');
  return direct.kind === 'none' && input.uid !== 0 ? chooseScope(input, direct) : direct;
}

/** Lines are "number:controllers:path". Version 2 is the line without a controller. */
function groupsOf(self: string): Map<string, string> {
  const lines = [...self.matchAll(/^\d+:([^:]*):\/?(.*)$/gm)];
  return new Map(
    lines.flatMap(([, controllers = '', group = '']) =>
      controllers.split(',').map((name): [string, string] => [name, group]),
    ),
  );
}

function chooseV1(root: string, groups: ReadonlyMap<string, string>): CgroupPlan {
  const parents = (['memory', 'pids', 'cpu'] as const).flatMap((controller): [Controller, string][] => {
    const group = groups.get(controller);
    const parent = join(root, controller, group ?? '');
    // A container that shows its own group as the root has no such path; no group is usable then.
    return group !== undefined && writable(parent) && writable(join(parent, 'cgroup.procs'))
      ? [[controller, parent]]
      : [];
  });
  const holds = parents.map(([controller]) => controller);
  if (!holds.includes('memory') && !holds.includes('pids'))
    return { kind: 'none', why: 'cgroup v1 can only be used by root' };
  return { kind: 'v1', parents: Object.fromEntries(parents), holds };
}

function chooseV2(root: string, own: string): CgroupPlan {
  let processesAtMost: number | null = null;
  // A path outside the mount ("/../x") belongs to an enclosing namespace.
  const names = own.split('/').filter((name) => name !== '');
  if (names.includes('..')) return { kind: 'none', why: 'the launcher runs outside of the cgroups it can see' };
  for (let depth = names.length; depth >= 0; depth--) {
    const group = join(root, ...names.slice(0, depth));
    const passesOn = words(join(group, 'cgroup.subtree_control'));
    const enable = isTrueRoot(group) ? needed.filter((name) => !passesOn.includes(name)) : [];
    const offered = [...passesOn, ...enable.filter((name) => words(join(group, 'cgroup.controllers')).includes(name))];
    if (needed.every((name) => offered.includes(name)) && writable(group) && writable(join(group, 'cgroup.procs'))) {
      const holds = ([...needed, 'cpu'] as const).filter((name) => offered.includes(name));
      return { kind: 'v2', parent: group, holds, enable, processesAtMost };
    }
    if (limitOf(join(group, 'memory.max')) !== null) {
      return { kind: 'none', why: 'the launcher itself runs under a memory limit, which a sandbox must not leave' };
    }
    const processes = limitOf(join(group, 'pids.max'));
    if (processes !== null) processesAtMost = Math.min(processes, processesAtMost ?? processes);
  }
  return { kind: 'none', why: 'no cgroup with memory and pids is writable' };
}

const needed: readonly Controller[] = ['memory', 'pids'];

// The root of a container's namespace looks like a root but has a type, contains processes, and cannot pass controllers on.
function isTrueRoot(group: string): boolean {
  return !existsSync(join(group, 'cgroup.type'));
}

interface ScopeAnswer {
  readonly bootId: string;
  readonly slice: string | null;
}

async function chooseScope(input: CgroupInput, otherwise: CgroupPlan): Promise<CgroupPlan> {
  const { uid, root, runtimeDir } = input;
  const systemdRun = input.systemdRun ?? '/usr/bin/systemd-run';
  const manager = join(root, `user.slice/user-${uid}.slice/user@${uid}.service`);
  const passed = words(join(manager, 'cgroup.controllers'));
  if (!needed.every((name) => passed.includes(name))) return otherwise;
  if (!existsSync(systemdRun) || !existsSync(join(runtimeDir, 'systemd', 'private'))) return otherwise;
  const slice = await cachedAnswer(input, () => probeScope(root, runtimeDir, systemdRun));
  if (slice === null)
    return { kind: 'none', why: 'the service manager of this user does not answer systemd-run --user --scope' };
  const holds = ([...needed, 'cpu'] as const).filter((name) => passed.includes(name));
  return { kind: 'scope', systemdRun, slice, manager, runtimeDir, holds };
}

/** Starts a scope and checks that its limits are really set. Returns the directory of the scope's parent. */
async function probeScope(root: string, runtimeDir: string, systemdRun: string): Promise<string | null> {
  const show = 'g=$(sed -n s/^0:://p /proc/self/cgroup); echo "$g"; cat "$1$g/memory.max" "$1$g/pids.max"';
  const argv = [
    ...scopeArgv(systemdRun, `ags-probe-${process.pid}`, { memoryBytes: 2 ** 26, processes: 64, cpus: null }),
    '/bin/sh',
    '-c',
    show,
    'sh',
    root,
  ];
  const { stdout } = await run(argv, { env: { XDG_RUNTIME_DIR: runtimeDir, PATH: '/usr/bin:/bin' }, timeoutMs: 5000 });
  const [group = '', memory, processes] = stdout.toString('utf8').split('\n');
  return memory === String(2 ** 26) && processes === '64' ? join(root, group, '..') : null;
}

/** systemd-run moves itself into the new scope and executes the command, which keeps its terminal, input, output and exit code. */
export function scopeArgv(
  systemdRun: string,
  unit: string,
  limits: { memoryBytes: number; processes: number; cpus: number | null },
): string[] {
  const properties = [`MemoryMax=${limits.memoryBytes}`, 'MemorySwapMax=0', `TasksMax=${limits.processes}`];
  if (limits.cpus !== null) properties.push(`CPUQuota=${Math.round(limits.cpus * 100)}%`);
  const given = properties.flatMap((property) => ['-p', property]);
  return [
    systemdRun,
    '--user',
    '--scope',
    '--quiet',
    '--collect',
    '--slice=ags.slice',
    `--unit=${unit}.scope`,
    ...given,
    '--',
  ];
}

// A negative answer may only mean that the service manager was not up yet.
const NEGATIVE_ANSWER_MS = 10 * 60_000;

async function cachedAnswer(input: CgroupInput, ask: () => Promise<string | null>): Promise<string | null> {
  const file = join(input.cacheDir, 'systemd-scope.json');
  const known = readAnswer(file);
  const fresh =
    known !== null &&
    known.answer.bootId === input.bootId &&
    (known.answer.slice !== null || known.ageMs < NEGATIVE_ANSWER_MS);
  if (fresh) return known.answer.slice;
  const answer: ScopeAnswer = { bootId: input.bootId, slice: await ask() };
  mkdirSync(input.cacheDir, { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.${process.pid}`, JSON.stringify(answer));
  renameSync(`${file}.${process.pid}`, file);
  return answer.slice;
}

function readAnswer(file: string): { answer: ScopeAnswer; ageMs: number } | null {
  try {
    const parsed: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (typeof parsed !== 'object' || parsed === null || !('bootId' in parsed) || !('slice' in parsed)) return null;
    const { bootId, slice } = parsed;
    if (typeof bootId !== 'string' || (slice !== null && typeof slice !== 'string')) return null;
    return { answer: { bootId, slice }, ageMs: Date.now() - statSync(file).mtimeMs };
  } catch {
    // The cache is missing or damaged.
    return null;
  }
}

function writable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function words(file: string): string[] {
  return readIfThere(file)
    .split(/\s+/)
    .filter((word) => word !== '');
}

/** Null for "max", and for a group without this controller. */
function limitOf(file: string): number | null {
  const text = readIfThere(file).trim();
  return text === '' || text === 'max' ? null : Number(text);
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
