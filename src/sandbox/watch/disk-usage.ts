// sandbox/watch/disk-usage.ts: how much disk a sandbox holds: its directories, and files it has deleted but keeps open.
// Invariant: what is walked is hostile. Every directory is entered by descriptor, so no link is followed and no path is too
// long; names are bytes; what cannot be looked into is reported as such and never taken for empty.
import {
  closeSync,
  constants,
  lstatSync,
  openSync,
  opendirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  type Dir,
  type Stats,
} from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { placeOf } from './memory-usage.ts';

export interface DiskUsage {
  readonly bytes: number;
  /** Files, directories and links. */
  readonly files: number;
  /** Bytes of memory files (memfd) that are open, mapped or not. */
  readonly memoryFileBytes: number;
  /** How many of the bytes are in files that are deleted and open. */
  readonly deletedBytes: number;
  /** False: a directory is closed to us, or too deep: `closed-directories.ts` may know more. */
  readonly isListed: boolean;
  /** False: open files could not be looked at, or there were too many. */
  readonly isSeen: boolean;
}

export interface DiskInput {
  readonly directories: readonly string[];
  /** Whose open files are looked at. */
  readonly pids: readonly number[];
  /** Where they see those directories. */
  readonly places: readonly string[];
  /** Counting ends here: more is over the limit anyway. */
  readonly maxBytes: number;
  readonly maxFiles: number;
}

/** Works in slices of a few milliseconds, so that whatever else this process does goes on. Null: aborted. */
export async function measureDisk(input: DiskInput, signal: AbortSignal): Promise<DiskUsage | null> {
  const total = { ...NOTHING };
  const done = await inSlices(walkAll(input, total, new Set()), signal);
  return done ? total : null;
}

export const NOTHING: DiskUsage = {
  bytes: 0,
  files: 0,
  memoryFileBytes: 0,
  deletedBytes: 0,
  isListed: true,
  isSeen: true,
};

type Total = { -readonly [K in keyof DiskUsage]: DiskUsage[K] };

// Deeper than any project; a tree made to exhaust our descriptors is not measured but reported.
const MAX_DEPTH = 200;
const MAX_OPEN_FILES = 300_000;
const SLICE_MS = 3;

function* walkAll(input: DiskInput, total: Total, counted: Set<string>): Generator<void> {
  for (const directory of input.directories) {
    const handle = enter(directory, total);
    if (handle !== null) yield* walk(handle, 0, input, total, counted);
  }
  yield* openFiles(input, total, counted);
}

function* walk(handle: number, depth: number, input: DiskInput, total: Total, counted: Set<string>): Generator<void> {
  try {
    const below = yield* countEntries(handle, input, total, counted);
    if (depth === MAX_DEPTH && below.length > 0) total.isListed = false;
    else {
      for (const name of below) {
        if (isOver(input, total)) return;
        const child = enter(at(handle, name), total);
        if (child !== null) yield* walk(child, depth + 1, input, total, counted);
      }
    }
  } finally {
    closeSync(handle);
  }
}

function* countEntries(
  handle: number,
  input: DiskInput,
  total: Total,
  counted: Set<string>,
): Generator<void, Buffer[]> {
  const below: Buffer[] = [];
  const directory = openListing(handle, total);
  if (directory === null) return below;
  try {
    for (let entry = directory.readSync(); entry !== null && !isOver(input, total); entry = directory.readSync()) {
      const name = Buffer.from(entry.name, 'latin1');
      const stats = look<Stats | null>(() => lstatSync(at(handle, name)), null, total);
      if (stats !== null) count(stats, total, counted);
      if (stats?.isDirectory()) below.push(name);
      yield;
    }
  } finally {
    directory.closeSync();
  }
  return below;
}

function count(stats: Stats, total: Total, counted: Set<string>): void {
  total.files += 1;
  if (stats.nlink > 1 && !stats.isDirectory() && !first(stats, counted)) return;
  total.bytes += stats.blocks * 512;
}

// A deleted file keeps its blocks for as long as anyone has it open or mapped. A thread may have descriptors of its own.
// Descriptors that are on their way through a socket cannot be seen without root: those are left to the free-space floor.
function* openFiles({ pids, places }: DiskInput, total: Total, counted: Set<string>): Generator<void> {
  const written = places.map((place) => Buffer.from(place).toString('latin1'));
  let looked = 0;
  for (const pid of pids) {
    for (const thread of look(() => readdirSync(`/proc/${pid}/task`), [], total, 'isSeen')) {
      const place = `/proc/${pid}/task/${thread}`;
      for (const fd of look(() => readdirSync(`${place}/fd`), [], total, 'isSeen')) {
        if (++looked > MAX_OPEN_FILES) {
          total.isSeen = false;
          return;
        }
        const link = `${place}/fd/${fd}`;
        const target = look(() => readlinkSync(link), '', total, 'isSeen');
        if (target.endsWith(' (deleted)')) countOpen(link, target, total, counted);
        yield;
      }
    }
    yield* mappedFiles(pid, written, total, counted);
    yield;
  }
}

/** Files that were deleted where the sandbox can write, are only mapped, and are not counted yet: how large one is only root may ask. */
function* mappedFiles(pid: number, places: readonly string[], total: Total, counted: Set<string>): Generator<void> {
  if (places.length === 0) return;
  const maps = look(() => readFileSync(`${placeOf(pid)}/maps`, 'latin1'), '', total, 'isSeen');
  const asked = new Set<string>();
  for (const [, from = '', to = '', major = '', minor = '', inode = '', path = ''] of maps.matchAll(MAPPED)) {
    yield;
    const file = `${makeDevice(Number.parseInt(major, 16), Number.parseInt(minor, 16))}:${inode}`;
    const name = path.replaceAll('\\012', '\n');
    if (counted.has(file) || asked.has(file) || !places.some((place) => name.startsWith(`${place}/`))) continue;
    asked.add(file);
    const stats = statMapped(`/proc/${pid}/map_files/${from}-${to}`);
    if (stats === null) total.isSeen = false;
    else countDeleted(stats, name, total, counted);
  }
}

const MAPPED = /^0*([\da-f]+)-0*([\da-f]+) \S+ \S+ ([\da-f]+):([\da-f]+) (\d+) +(\/.*) \(deleted\)$/gm;

function statMapped(link: string): Stats | null {
  try {
    return statSync(link);
  } catch {
    return null;
  }
}

/** The number that `stat` gives for a device. */
const makeDevice = (major: number, minor: number): number =>
  ((minor & 0xff) | ((major & 0xfff) << 8)) + (minor >> 8) * 2 ** 20;

function countOpen(link: string, target: string, total: Total, counted: Set<string>): void {
  const stats = look<Stats | null>(() => statSync(link), null, total, 'isSeen');
  if (stats !== null) countDeleted(stats, target, total, counted);
}

function countDeleted(stats: Stats, target: string, total: Total, counted: Set<string>): void {
  if (!stats.isFile() || stats.nlink > 0 || !first(stats, counted)) return;
  const bytes = stats.blocks * 512;
  if (target.startsWith('/memfd:')) total.memoryFileBytes += bytes;
  else {
    total.bytes += bytes;
    total.deletedBytes += bytes;
  }
}

function first(stats: Stats, counted: Set<string>): boolean {
  const key = `${stats.dev}:${stats.ino}`;
  if (counted.has(key)) return false;
  counted.add(key);
  return true;
}

function isOver(input: DiskInput, total: Total): boolean {
  return total.bytes > input.maxBytes || total.files > input.maxFiles;
}

/** Null: it is gone, or no longer a directory. One that may not be read is counted as found, and said so. */
function enter(path: string | Buffer, total: Total): number | null {
  return look<number | null>(
    () => openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW),
    null,
    total,
  );
}

function look<T>(at: () => T, nothing: T, total: Total, lacks: 'isListed' | 'isSeen' = 'isListed'): T {
  try {
    return at();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    // Whatever else there is, a path of an open file that is too long to be told, say, must not end who looks.
    if (code !== 'ENOENT' && code !== 'ESRCH' && code !== 'ENOTDIR' && code !== 'ELOOP') total[lacks] = false;
    return nothing;
  }
}

// A name on Linux need not be UTF-8; latin1 keeps every byte. Small batches, because a directory may hold a million names.
function openListing(handle: number, total: Total): Dir | null {
  return look<Dir | null>(
    () => opendirSync(`/proc/self/fd/${handle}`, { encoding: 'latin1', bufferSize: 128 }),
    null,
    total,
  );
}

function at(handle: number, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${handle}/`), name]);
}

async function inSlices(steps: Generator<void>, signal: AbortSignal): Promise<boolean> {
  let until = performance.now() + SLICE_MS;
  try {
    for (;;) {
      if (steps.next().done === true) return true;
      if (performance.now() < until) continue;
      await setImmediate();
      if (signal.aborted) return false;
      until = performance.now() + SLICE_MS;
    }
  } finally {
    // Closes the descriptors of a walk that was cut short.
    steps.return(undefined);
  }
}
