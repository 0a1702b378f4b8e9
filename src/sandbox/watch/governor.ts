// sandbox/watch/governor.ts: watches a running sandbox for limits that the kernel does not enforce, and reports them. It never kills.
// Invariant: each limit is reported once, as soon as it is exceeded. Watching keeps no process alive, and costs next to nothing for a run
// that ends before the first measurement.
import type { StatsFs } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import type { Limits, Mount } from '../../protocol/spec.ts';
import { openClosed, measureDisk, NOTHING } from './disk-usage.ts';
import {
  allowance,
  diskBreach,
  freeBreach,
  memoryUsed,
  nextDelayMs,
  PACE,
  placesOf,
  shouldLookForMemoryFiles,
  shouldMeasure,
  type Breach,
  type FreeSpace,
  type Measured,
} from './governor-rules.ts';
import { exactMemory, machineSharedBytes, quickMemory } from './memory-usage.ts';
import { processTree, startTicks } from './process-tree.ts';

export type { Breach } from './governor-rules.ts';

export interface WatchInput {
  /** The host's process ID of the sandbox's PID 1. Null: the sandbox is remote, and only its time can be watched. */
  readonly initPid: number | null;
  readonly limits: Limits;
  /** False when a cgroup limits memory: then usage is only recorded. */
  readonly watchMemory: boolean;
  /** Counted together as disk usage: the workspace's upper and the home. */
  readonly directories: readonly string[];
  /** The mounts of the sandbox; they tell where it sees those directories. */
  readonly mounts: readonly Mount[];
  /** The space that must stay free on their file systems, no matter which program uses it. */
  readonly freeFloorBytes: number;
  onBreach(breach: Breach): void;
}

export interface Peak {
  readonly memoryBytes: number;
  /** Processes and threads. */
  readonly processes: number;
  readonly diskBytes: number;
}

export interface Watch {
  stop(): void;
  peak(): Peak;
}

export function watchSandbox(input: WatchInput): Watch {
  const ended = new AbortController();
  const peak = { memoryBytes: 0, processes: 0, diskBytes: 0 };
  const reported = new Set<Breach['limit']>();
  const report = (breach: Breach | null): void => {
    if (breach === null || ended.signal.aborted || reported.has(breach.limit)) return;
    reported.add(breach.limit);
    input.onBreach(breach);
  };
  const memory = memoryMeter(input, ended.signal);
  const disk = diskMeter(input, ended.signal);
  // A process ID alone could be reused before the next measurement.
  const { initPid } = input;
  const init = initPid === null ? null : startTicks(initPid);
  const startedMs = performance.now();
  let last = { atMs: startedMs, used: 0 };
  let timer: NodeJS.Timeout | undefined;

  const look = async (): Promise<void> => {
    const atMs = performance.now();
    report(timeBreach(input.limits, atMs - startedMs));
    if (initPid === null) return lookIn(PACE.slowestMs);
    const tree = init === null || startTicks(initPid) !== init ? null : processTree(initPid);
    if (tree === null) return;
    // Not awaited: measuring a tree of a million files must not delay the memory check.
    void disk(tree.pids)
      .then(({ usedBytes, breach }) => {
        peak.diskBytes = Math.max(peak.diskBytes, usedBytes);
        report(breach);
      })
      // The next measurement tries again.
      .catch(() => undefined);
    const used = await memory(tree.pids);
    peak.memoryBytes = Math.max(peak.memoryBytes, used);
    peak.processes = Math.max(peak.processes, tree.tasks);
    const allowed = input.limits.memoryBytes;
    if (input.watchMemory && used > allowed) report({ limit: 'memory', unit: 'bytes', used, allowed });
    const growthPerMs = (used - last.used) / (atMs - last.atMs);
    last = { atMs, used };
    lookIn(
      input.watchMemory
        ? nextDelayMs({ used, growthPerMs, allowed, costMs: performance.now() - atMs })
        : PACE.slowestMs,
    );
  };
  // This process lacks a resource for the moment.
  const again = (): void => lookIn(PACE.slowestMs);
  const lookIn = (delayMs: number): void => {
    if (ended.signal.aborted) return;
    const leftMs = (input.limits.wallSeconds ?? Number.POSITIVE_INFINITY) * 1000 - (performance.now() - startedMs);
    timer = setTimeout(() => void look().catch(again), leftMs > 0 ? Math.min(delayMs, leftMs + 1) : delayMs);
    timer.unref();
  };
  lookIn(PACE.firstMs);
  return {
    stop() {
      ended.abort();
      clearTimeout(timer);
    },
    peak: () => ({ ...peak }),
  };
}

function timeBreach({ wallSeconds }: Limits, elapsedMs: number): Breach | null {
  if (wallSeconds === null || elapsedMs < wallSeconds * 1000) return null;
  return { limit: 'time', unit: 'seconds', used: Math.round(elapsedMs / 1000), allowed: wallSeconds };
}

function memoryMeter(input: WatchInput, signal: AbortSignal): (pids: readonly number[]) => Promise<number> {
  const allowed = input.limits.memoryBytes;
  let sharedThen = input.watchMemory ? machineSharedBytes() : 0;
  let memoryFileBytes = 0;
  return async (pids) => {
    const quick = quickMemory(pids);
    if (!input.watchMemory) return quick.privateBytes;
    const sharedNow = machineSharedBytes();
    const mightBeOver = quick.atMostBytes + memoryFileBytes > allowed;
    if (
      shouldLookForMemoryFiles(sharedNow - sharedThen, memoryFileBytes, allowed) ||
      (mightBeOver && memoryFileBytes > 0)
    ) {
      const open = await measureDisk(
        { directories: [], pids, places: [], maxBytes: Number.POSITIVE_INFINITY, maxFiles: Number.POSITIVE_INFINITY },
        signal,
      );
      memoryFileBytes = open?.memoryFileBytes ?? memoryFileBytes;
      sharedThen = sharedNow;
    }
    if (quick.atMostBytes + memoryFileBytes <= allowed) return quick.privateBytes + memoryFileBytes;
    return memoryUsed(await exactMemory(pids), memoryFileBytes);
  };
}

interface DiskLook {
  readonly usedBytes: number;
  readonly breach: Breach | null;
}

function diskMeter(input: WatchInput, signal: AbortSignal): (pids: readonly number[]) => Promise<DiskLook> {
  const allowed = allowance(input.limits.diskBytes);
  const start = freeSpace(input.directories);
  start.catch(() => undefined);
  const places = placesOf(input.mounts);
  let last: Measured = {
    atMs: performance.now(),
    tookMs: 0,
    usage: NOTHING,
    free: null,
  };
  const measure = async (pids: readonly number[], atStart: FreeSpace, free: FreeSpace): Promise<Breach | null> => {
    const atMs = performance.now();
    const walked = await measureDisk(
      {
        directories: input.directories,
        pids,
        places,
        maxBytes: allowed.bytes,
        maxFiles: allowed.files,
      },
      signal,
    );
    if (walked === null) return null;
    const usage = walked.isListed ? walked : await openClosed(walked, input.directories, signal);
    last = { atMs, tookMs: performance.now() - atMs, usage, free };
    return diskBreach(usage, atStart, free, allowed);
  };
  let busy = false;
  return async (pids) => {
    const [atStart, free] = [await start, await freeSpace(input.directories)];
    if (atStart === null || free === null) return { usedBytes: 0, breach: null };
    // Checked every time: a disk can fill up during a long walk.
    const low = freeBreach(free, input.freeFloorBytes);
    if (low !== null || busy || !shouldMeasure(last, atStart, free, performance.now(), allowed))
      return { usedBytes: 0, breach: low };
    busy = true;
    try {
      const breach = await measure(pids, atStart, free);
      return { usedBytes: last.usage.bytes, breach };
    } finally {
      busy = false;
    }
  };
}

/** Free space of the directories that exist. Null: none exists, because the run is over and being removed. */
async function freeSpace(directories: readonly string[]): Promise<FreeSpace | null> {
  const seen = (await Promise.all(directories.map(spaceOf))).filter((one) => one !== null);
  if (seen.length === 0) return null;
  const each = [...new Map(seen.map(({ device, space }) => [device, space])).values()];
  const bytes = each.map((one) => one.bavail * one.bsize);
  const files = each.map((one) => one.ffree);
  return {
    bytes: bytes.reduce((sum, one) => sum + one, 0),
    files: files.reduce((sum, one) => sum + one, 0),
    leastBytes: Math.min(...bytes),
    leastFiles: Math.min(...files),
    totalFiles: Math.min(...each.map((one) => one.files)),
  };
}

async function spaceOf(path: string): Promise<{ device: number; space: StatsFs } | null> {
  try {
    return { device: (await stat(path)).dev, space: await statfs(path) };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
