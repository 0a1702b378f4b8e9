// sandbox/watch/governor-rules.ts: when the watcher measures, what it measures, and when a limit is exceeded. Pure.
// Invariant: doubt is charged to the sandbox. Unmeasured usage counts as the space that the file system lost.
import { dirname, resolve } from 'node:path';
import type { Mount } from '../../protocol/spec.ts';
import type { ExactMemory } from './memory-usage.ts';
import type { DiskUsage } from './disk-usage.ts';

export interface Breach {
  readonly limit: 'memory' | 'disk' | 'time' | 'free-space';
  readonly unit: 'bytes' | 'files' | 'seconds';
  /** For "free-space", `used` is the space left and `allowed` the space that must be left. */
  readonly used: number;
  readonly allowed: number;
}

export const PACE = { firstMs: 250, usualMs: 250, fastestMs: 50, slowestMs: 1000 } as const;

/** Half of the time until the limit at the present growth, within bounds. Measuring takes at most a tenth of the time. */
export function nextDelayMs(now: {
  readonly used: number;
  readonly growthPerMs: number;
  readonly allowed: number;
  readonly costMs: number;
}): number {
  const leftMs = now.growthPerMs > 0 ? (now.allowed - now.used) / now.growthPerMs : Number.POSITIVE_INFINITY;
  const wanted = Math.min(PACE.usualMs, Math.max(PACE.fastestMs, leftMs / 2));
  return Math.min(PACE.slowestMs, Math.max(wanted, now.costMs * 10));
}

/** One reading of the file systems: the free space in all of them, and in the fullest one. */
export interface FreeSpace {
  readonly bytes: number;
  readonly files: number;
  readonly leastBytes: number;
  readonly leastFiles: number;
  /** Zero for a file system that creates inodes on demand. */
  readonly totalFiles: number;
}

export interface Measured {
  readonly atMs: number;
  readonly tookMs: number;
  readonly usage: DiskUsage;
  /** The free space when the measurement began; null before the first one. */
  readonly free: FreeSpace | null;
}

export interface Allowance {
  readonly bytes: number;
  readonly files: number;
}

/** Files take at least one block, but many are empty or tiny. A million is more than any dependency tree known to us. */
export function allowance(diskBytes: number): Allowance {
  return { bytes: diskBytes, files: Math.max(1_000_000, Math.floor(diskBytes / 4096)) };
}

/** The writable paths of a sandbox: by name, and by the target of a symbolic link on the way (/var/tmp). */
export function placesOf(mounts: readonly Mount[]): string[] {
  const written = mounts.flatMap((mount) =>
    mount.kind === 'workspace' || (mount.kind === 'bind' && mount.writable) ? [mount.to] : [],
  );
  const links = mounts.filter((mount) => mount.kind === 'symlink');
  return written.flatMap((path) => [
    path,
    ...links
      .filter(({ to }) => path.startsWith(`${to}/`))
      .map(({ to, target }) => resolve(dirname(to), target) + path.slice(to.length)),
  ]);
}

const AT_LEAST_EVERY_MS = 10_000;

/** Walking a tree is expensive: only when the file system lost a good part of what the sandbox may still write. */
export function shouldMeasure(
  last: Measured,
  atStart: FreeSpace,
  free: FreeSpace,
  nowMs: number,
  allowed: Allowance,
): boolean {
  const sinceMs = nowMs - last.atMs;
  if (sinceMs < last.tookMs * 3) return false;
  const then = last.free ?? atStart;
  const lostBytes = then.bytes - free.bytes;
  const lostFiles = then.files - free.files;
  if (lostBytes > step(allowed.bytes, last.usage.bytes) || lostFiles > step(allowed.files, last.usage.files))
    return true;
  return sinceMs >= AT_LEAST_EVERY_MS && (lostBytes !== 0 || lostFiles !== 0);
}

export function diskBreach(usage: DiskUsage, atStart: FreeSpace, free: FreeSpace, allowed: Allowance): Breach | null {
  const isWhole = usage.isListed && usage.isSeen;
  const bytes = isWhole ? usage.bytes : Math.max(usage.bytes, atStart.bytes - free.bytes);
  const files = isWhole ? usage.files : Math.max(usage.files, atStart.files - free.files);
  if (bytes > allowed.bytes) return { limit: 'disk', unit: 'bytes', used: bytes, allowed: allowed.bytes };
  if (files > allowed.files) return { limit: 'disk', unit: 'files', used: files, allowed: allowed.files };
  return null;
}

export function freeBreach(free: FreeSpace, floorBytes: number): Breach | null {
  if (free.leastBytes < floorBytes)
    return { limit: 'free-space', unit: 'bytes', used: free.leastBytes, allowed: floorBytes };
  const floorFiles = Math.min(10_000, Math.floor(free.totalFiles / 50));
  if (free.leastFiles < floorFiles)
    return { limit: 'free-space', unit: 'files', used: free.leastFiles, allowed: floorFiles };
  return null;
}

/** An unmapped memory file is in no process's account; a mapped one must not count twice. */
export function memoryUsed(exact: ExactMemory, memoryFileBytes: number): number {
  return exact.bytes - exact.sharedBytes + Math.max(exact.sharedBytes, memoryFileBytes);
}

/** Memory files are searched when the machine's shared memory grew by a good part of what is still allowed. */
export function shouldLookForMemoryFiles(risenBytes: number, knownBytes: number, allowedBytes: number): boolean {
  return risenBytes > step(allowedBytes, knownBytes);
}

// A quarter of the rest approaches the limit without constant measuring; the minimum of a hundredth ends the approach.
function step(allowed: number, used: number): number {
  return Math.max((allowed - used) / 4, allowed / 100);
}
