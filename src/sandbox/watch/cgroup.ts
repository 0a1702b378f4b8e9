// sandbox/watch/cgroup.ts: one control group per sandbox, created before its first process, emptied and removed after its last.
// Invariant: limits are set before any process can enter. Closing a group leaves no process and no group behind; if its owner was killed,
// the group's name identifies the owner, so that `ags cleanup` can finish the job.
import { existsSync, mkdirSync, readdirSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import type { Limits } from '../../protocol/spec.ts';
import { scopeArgv, type CgroupPlan, type Controller } from './cgroup-plan.ts';
import { killAll, readIfThere, remove, tryRemove } from './cgroup-removal.ts';
import { startTicks, unlessGone } from './process-tree.ts';

export interface CgroupStats {
  readonly memoryBytes: number;
  readonly peakBytes: number;
  /** Processes that the kernel killed because the group ran out of memory. */
  readonly oomKills: number;
  readonly processes: number;
  /** How often the kernel refused a new process. */
  readonly forksRefused: number;
}

export interface Cgroup extends AsyncDisposable {
  readonly name: string;
  /** Files into which the launcher writes "0" before it does anything else. A failed write must end the launcher. */
  readonly enterFiles: readonly string[];
  /** Prepended to the launcher's argv; `env` is added to its environment. */
  readonly prefix: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The current figures, or the last ones seen: a systemd scope disappears with its last process. Null: there is no group. */
  stats(): CgroupStats | null;
  /** Sends SIGKILL to every process inside, once. */
  kill(): void;
}

// Processes that the launcher needs beside the command: shells, both bwrap processes, prlimit.
const HELPERS = 16;

export function openCgroup(plan: CgroupPlan, id: string, limits: Limits): Cgroup {
  const name = groupName(id);
  switch (plan.kind) {
    case 'none':
    case 'engine':
      return group({ name, directories: [], enterFile: 'cgroup.procs', prefix: [], env: {}, above: null });
    case 'v1': {
      const made = Object.entries(plan.parents).map(([controller, parent]) => ({
        controller,
        directory: join(parent, name),
      }));
      // Moving a single thread avoids a wait of 8 ms for all others; the launcher has only one thread.
      return makeGroups(name, made, 'tasks', (controller) => settingsV1(limits)[controller as Controller]);
    }
    case 'v2': {
      if (plan.enable.length > 0)
        writeFileSync(join(plan.parent, 'cgroup.subtree_control'), plan.enable.map((one) => `+${one}`).join(' '));
      const processes = Math.min(limits.processes + HELPERS, plan.processesAtMost ?? Number.POSITIVE_INFINITY);
      const settings = plan.holds.flatMap((controller) => settingsV2(limits, processes)[controller]);
      const made = [{ controller: 'all', directory: join(plan.parent, name) }];
      return makeGroups(name, made, 'cgroup.procs', () => settings);
    }
    case 'scope': {
      const prefix = scopeArgv(plan.systemdRun, name, {
        memoryBytes: limits.memoryBytes,
        processes: limits.processes + HELPERS,
        cpus: limits.cpus,
      });
      const directories = [join(plan.slice, `${name}.scope`)];
      return group({
        name,
        directories,
        enterFile: 'cgroup.procs',
        prefix,
        env: { XDG_RUNTIME_DIR: plan.runtimeDir },
        above: plan.manager,
      });
    }
  }
}

/** Groups of sandboxes whose owner is dead: `root` itself, or any group below it. */
export function staleCgroups(root: string): string[] {
  return listGroups(root, 0).filter((directory) => {
    const owner = ownerOf(basename(directory));
    // A process ID of another PID namespace means nothing here.
    return (
      owner !== null && owner.namespace === pidNamespace() && startTicks(owner.pid) !== owner.ticks && isOurs(directory)
    );
  });
}

/** Kills the remaining processes and removes the groups. Returns the directories that are gone. */
export async function removeStale(root: string): Promise<string[]> {
  const stale = staleCgroups(root);
  const removed = await Promise.all(stale.map(async (directory) => ((await remove(directory)) ? [directory] : [])));
  return removed.flat();
}

const PERIOD_US = 100_000;

function quota(cpus: number): number {
  return Math.round(cpus * PERIOD_US);
}

type Setting = readonly [file: string, value: string, optional?: 'optional'];

// A memory limit alone would only push a greedy process into swap. The swap files are missing where the kernel has no swap accounting. A
// group gets half the CPU weight of ordinary processes, so that a sandbox with many of them leaves the machine usable.
function settingsV2(limits: Limits, processes: number): Record<Controller, Setting[]> {
  return {
    memory: [
      ['memory.max', String(limits.memoryBytes)],
      ['memory.swap.max', '0', 'optional'],
    ],
    pids: [['pids.max', String(processes)]],
    cpu: [
      ['cpu.weight', '50', 'optional'],
      ...(limits.cpus === null ? [] : [['cpu.max', `${quota(limits.cpus)} ${PERIOD_US}`] as const]),
    ],
  };
}

function settingsV1(limits: Limits): Record<Controller, Setting[]> {
  const bytes = String(limits.memoryBytes);
  return {
    memory: [
      ['memory.limit_in_bytes', bytes],
      ['memory.memsw.limit_in_bytes', bytes, 'optional'],
      ['memory.swappiness', '0', 'optional'],
    ],
    pids: [['pids.max', String(limits.processes + HELPERS)]],
    cpu: [
      ['cpu.shares', '512', 'optional'],
      ...(limits.cpus === null
        ? []
        : ([
            ['cpu.cfs_period_us', String(PERIOD_US)],
            ['cpu.cfs_quota_us', String(quota(limits.cpus))],
          ] as const)),
    ],
  };
}

interface NewGroup {
  readonly controller: string;
  readonly directory: string;
}

function makeGroups(
  name: string,
  made: readonly NewGroup[],
  enterFile: Parts['enterFile'],
  settings: (controller: string) => readonly Setting[],
): Cgroup {
  const directories = made.map(({ directory }) => directory);
  try {
    for (const { controller, directory } of made) {
      mkdirSync(directory);
      for (const [file, value, optional] of settings(controller)) {
        if (optional && !existsSync(join(directory, file))) continue;
        writeFileSync(join(directory, file), value);
      }
    }
  } catch (cause) {
    for (const directory of directories) tryRemove(directory);
    throw new AgsError('backend.failed', 'The control group of the sandbox could not be set up.', {
      cause,
      hint: 'Run: ags doctor',
    });
  }
  return group({ name, directories, enterFile, prefix: [], env: {}, above: null });
}

interface Parts {
  readonly name: string;
  readonly directories: readonly string[];
  readonly enterFile: 'cgroup.procs' | 'tasks';
  readonly prefix: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** A group above a scope that outlives it. It also counts processes killed below it, ours or (rarely) another's. */
  readonly above: string | null;
}

function group(parts: Parts): Cgroup {
  const { name, directories, enterFile, prefix, env, above } = parts;
  const killedAbove = (): number =>
    above === null ? 0 : counter(readIfThere(join(above, 'memory.events')), 'oom_kill');
  const before = killedAbove();
  let last: CgroupStats | null =
    above === null ? null : { memoryBytes: 0, peakBytes: 0, oomKills: 0, processes: 0, forksRefused: 0 };
  return {
    name,
    prefix,
    env,
    // systemd-run enters the scope itself.
    enterFiles: prefix.length > 0 ? [] : directories.map((directory) => join(directory, enterFile)),
    stats() {
      const oomKills = Math.max(last?.oomKills ?? 0, killedAbove() - before);
      const gone = last && { ...last, memoryBytes: 0, processes: 0, oomKills };
      last = readStats(directories) ?? gone;
      return last;
    },
    kill: () => directories.forEach(killAll),
    async [Symbol.asyncDispose]() {
      const gone = await Promise.all(directories.map(remove));
      if (gone.includes(false)) {
        throw new AgsError(
          'backend.failed',
          `Some processes of the sandbox could not be killed; they are in ${directories.join(', ')}.`,
          {
            hint: 'They are probably waiting for a device or a network file system. Try later: ags cleanup',
          },
        );
      }
    },
  };
}

function readStats(directories: readonly string[]): CgroupStats | null {
  // existsSync comes first: most of these files are in another directory, and a failed read costs ten times as much.
  const text = (...files: string[]): string | undefined => {
    for (const file of files) {
      for (const directory of directories) {
        const path = join(directory, file);
        const found = existsSync(path) ? readIfThere(path) : undefined;
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
  const number = (...files: string[]): number | undefined => {
    const found = text(...files);
    return found === undefined ? undefined : Number(found);
  };
  const memoryBytes = number('memory.current', 'memory.usage_in_bytes');
  const processes = number('pids.current');
  const peakBytes = number('memory.peak', 'memory.max_usage_in_bytes') ?? memoryBytes ?? 0;
  const forksRefused = counter(text('pids.events'), 'max');
  // Read last: if the group disappears meanwhile, it must not look as if nothing was killed.
  const events = text('memory.events', 'memory.oom_control');
  if (memoryBytes === undefined ? processes === undefined : events === undefined) return null;
  return {
    memoryBytes: memoryBytes ?? 0,
    peakBytes,
    oomKills: counter(events, 'oom_kill'),
    processes: processes ?? 0,
    forksRefused,
  };
}

/** Reads one counter from lines of "word number". */
function counter(text: string | undefined, word: string): number {
  const line = text?.split('\n').find((candidate) => candidate.startsWith(`${word} `));
  return Number(line?.slice(word.length) ?? 0);
}

/** Groups of other users are left to them. */
function isOurs(directory: string): boolean {
  const uid = process.getuid?.();
  return uid === 0 || statSync(directory, { throwIfNoEntry: false })?.uid === uid;
}

function groupName(id: string): string {
  if (!/^[a-z0-9-]+$/.test(id)) throw new AgsError('usage.invalid', `"${id}" cannot name a control group.`);
  return `ags-${id}.${process.pid}.${startTicks(process.pid)}.${pidNamespace()}`;
}

function ownerOf(name: string): { pid: number; ticks: string; namespace: string } | null {
  const [, pid, ticks, namespace] = /^ags-[a-z0-9-]+\.(\d+)\.(\d+)\.(\d+)(?:\.scope)?$/.exec(name) ?? [];
  return pid && ticks && namespace ? { pid: Number(pid), ticks, namespace } : null;
}

function pidNamespace(): string {
  return readlinkSync('/proc/self/ns/pid').replace(/\D/g, '');
}

// Deep enough for user.slice/user-1000.slice/user@1000.service/app.slice/<terminal>.slice below a controller's directory.
const MAX_DEPTH = 9;

function listGroups(directory: string, depth: number): string[] {
  if (ownerOf(basename(directory)) !== null) return [directory];
  if (depth === MAX_DEPTH) return [];
  const entries = unlessGone(() => readdirSync(directory, { withFileTypes: true }), []);
  return entries.flatMap((entry) => (entry.isDirectory() ? listGroups(join(directory, entry.name), depth + 1) : []));
}
