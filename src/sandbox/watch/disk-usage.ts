// sandbox/watch/disk-usage.ts: measures the disk space of a sandbox: its directories, and deleted files that it keeps open.
// Invariant: the walked tree is hostile. Every directory is entered by descriptor, so no link is followed and no path is too long. Names
// are bytes. An unreadable directory is reported as unreadable and never counted as empty.
import {
  closeSync,
  constants,
  type Dir,
  lstatSync,
  opendirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  type Stats,
  statSync,
} from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { run } from '../../lib/process/process.ts';
import { SYSTEM_PATH } from '../io/descriptors.ts';
import { placeOf } from './memory-usage.ts';

export interface DiskUsage {
  readonly bytes: number;
  /** Files, directories and links. */
  readonly files: number;
  /** Bytes of memory files (memfd) that are open, mapped or not. */
  readonly memoryFileBytes: number;
  /** The part of `bytes` that belongs to deleted files that are still open. */
  readonly deletedBytes: number;
  /** False: a directory is unreadable or too deep; `openClosed` may be able to measure it. */
  readonly isListed: boolean;
  /** False: open files could not be inspected, or there were too many. */
  readonly isSeen: boolean;
}

export interface DiskInput {
  readonly directories: readonly string[];
  /** The processes whose open files count. */
  readonly pids: readonly number[];
  /** The paths of those directories inside the sandbox. */
  readonly places: readonly string[];
  /** Counting stops here: the limit is exceeded anyway. */
  readonly maxBytes: number;
  readonly maxFiles: number;
}

/** Works in slices of a few milliseconds, so that this process stays responsive. Null: aborted. */
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

// Deeper than any project. A tree made to exhaust our descriptors is reported, not measured.
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
      const stats = tryRead<Stats | null>(() => lstatSync(at(handle, name)), null, total);
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

// A deleted file keeps its blocks while a process has it open or mapped. A thread may have its own descriptors.
// Only root can see descriptors in transit through a socket; the free-space floor covers those.
function* openFiles({ pids, places }: DiskInput, total: Total, counted: Set<string>): Generator<void> {
  const written = places.map((place) => Buffer.from(place).toString('latin1'));
  let inspected = 0;
  for (const pid of pids) {
    for (const thread of tryRead(() => readdirSync(`/proc/${pid}/task`), [], total, 'isSeen')) {
      const place = `/proc/${pid}/task/${thread}`;
      for (const fd of tryRead(() => readdirSync(`${place}/fd`), [], total, 'isSeen')) {
        if (++inspected > MAX_OPEN_FILES) {
          total.isSeen = false;
          return;
        }
        const link = `${place}/fd/${fd}`;
        const target = tryRead(() => readlinkSync(link), '', total, 'isSeen');
        if (target.endsWith(' (deleted)')) countOpen(link, target, total, counted);
        yield;
      }
    }
    yield* mappedFiles(pid, written, total, counted);
    yield;
  }
}

/** Counts deleted files of the sandbox's writable directories that are only mapped. Only root may read the size of such a file. */
function* mappedFiles(pid: number, places: readonly string[], total: Total, counted: Set<string>): Generator<void> {
  if (places.length === 0) return;
  const maps = tryRead(() => readFileSync(`${placeOf(pid)}/maps`, 'latin1'), '', total, 'isSeen');
  const checked = new Set<string>();
  for (const [, from = '', to = '', major = '', minor = '', inode = '', path = ''] of maps.matchAll(MAPPED)) {
    yield;
    const file = `${makeDevice(Number.parseInt(major, 16), Number.parseInt(minor, 16))}:${inode}`;
    const name = path.replaceAll('\\012', '\n');
    if (counted.has(file) || checked.has(file) || !places.some((place) => name.startsWith(`${place}/`))) continue;
    checked.add(file);
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

/** The device number as `stat` reports it. */
const makeDevice = (major: number, minor: number): number =>
  ((minor & 0xff) | ((major & 0xfff) << 8)) + (minor >> 8) * 2 ** 20;

function countOpen(link: string, target: string, total: Total, counted: Set<string>): void {
  const stats = tryRead<Stats | null>(() => statSync(link), null, total, 'isSeen');
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

/** Null: it is gone, or no longer a directory. An unreadable directory is counted but marks the total as incomplete. */
function enter(path: string | Buffer, total: Total): number | null {
  return tryRead<number | null>(
    () => openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW),
    null,
    total,
  );
}

function tryRead<T>(at: () => T, nothing: T, total: Total, lacks: 'isListed' | 'isSeen' = 'isListed'): T {
  try {
    return at();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    // Any other error, such as an overlong path of an open file, must not stop the measurement.
    if (code !== 'ENOENT' && code !== 'ESRCH' && code !== 'ENOTDIR' && code !== 'ELOOP') total[lacks] = false;
    return nothing;
  }
}

// A name on Linux need not be UTF-8; latin1 keeps every byte. Batches are small because a directory may contain a million names.
function openListing(handle: number, total: Total): Dir | null {
  return tryRead<Dir | null>(
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
    // Closes the descriptors of an aborted walk.
    steps.return(undefined);
  }
}

const PATIENCE_MS = 20_000;
const ENV = { PATH: SYSTEM_PATH, LC_ALL: 'C' };
// In a new user namespace a user may list all of their own directories. Root needs none.
const AS_OWNER = ['unshare', '--user', '--map-root-user', '--'];

/**
 * Returns the usage with all directories counted, as far as `du` can see them: also those that an agent closed to their owner, or made
 * deeper than our walk goes. It reads only names and sizes. An unmeasured directory is charged to the sandbox (governor-rules.ts).
 */
export async function openClosed(
  usage: DiskUsage,
  directories: readonly string[],
  signal: AbortSignal,
): Promise<DiskUsage> {
  const [bytes, files] = [
    await sum(['--block-size=1'], directories, signal),
    await sum(['--inodes'], directories, signal),
  ];
  if (bytes === null || files === null) return usage;
  // du counts the top directories themselves; the walk does not.
  return {
    ...usage,
    bytes: bytes + usage.deletedBytes,
    files: Math.max(0, files - directories.length),
    isListed: true,
  };
}

/** du enters directories by descriptor, follows no link, and counts a file with several names once. */
async function sum(
  options: readonly string[],
  directories: readonly string[],
  signal: AbortSignal,
): Promise<number | null> {
  const du = ['du', '--summarize', '--total', '--one-file-system', ...options, '--', ...directories];
  const asOwner = process.getuid?.() === 0 ? du : [...AS_OWNER, ...du];
  const { exitCode, stdout, stderr } = await run(asOwner, { env: ENV, timeoutMs: PATIENCE_MS, signal });
  // A file deleted meanwhile is no error. Any other complaint means that something was not counted.
  const complaints = stderr.split('\n').filter((line) => line !== '' && !line.endsWith(': No such file or directory'));
  if (exitCode > 1 || complaints.length > 0) return null;
  const total = /(?:^|\n)(\d+)\ttotal\n$/.exec(stdout.toString('latin1'))?.[1];
  return total === undefined ? null : Number(total);
}
