// review/upper.ts: lists written and deleted files from an overlay's upper directory, which is hostile data.
// Invariant: it reads only names and lstat, descriptor by descriptor. It follows no link, reads no content, and lists
// nothing that the sandbox could not see. Exceeding a limit ends the listing before anything is copied.
import { isUtf8 } from 'node:buffer';
import { errorCode } from '../lib/error-code.ts';
import { pathOf } from '../lib/byte-path.ts';
import { openDirectory, type Directory, type Listed } from '../lib/descend.ts';
import { isWhiteout, openMerged, type LowerDirectory } from '../lib/merged.ts';
import type { Refusal } from '../protocol/changes.ts';
import { AgsError } from '../protocol/errors.ts';

export interface UpperEntry {
  readonly path: string;
  /** A "written" file may have unchanged bytes, after a touch for example. */
  readonly kind: 'written' | 'deleted';
  readonly type: 'file' | 'symlink';
  /** Permission bits only. */
  readonly mode: number;
  /** The claimed size: a sparse file can claim more than any disk holds. */
  readonly bytes: number;
}

export interface UpperListing {
  /** One entry per leaf. A deleted directory is listed as the files it had. */
  readonly entries: readonly UpperEntry[];
  /** Every directory of the upper that was read. */
  readonly directories: readonly string[];
  /** Directories of the lower that the sandbox removed, each after those below it. */
  readonly removed: readonly string[];
  /** A set-user-id file is also in `entries`, for its content; every other path here is not. */
  readonly refused: readonly Refusal[];
}

export interface UpperLimits {
  /** Counted separately for the upper and for deleted files of the lower. */
  readonly entries: number;
  readonly depth: number;
}

export const UPPER_LIMITS: UpperLimits = { entries: 200_000, depth: 200 };

export function listUpper(input: {
  upper: string;
  /** The project, or the layers in its place, topmost first. */
  lower: string | readonly string[];
  /** True for paths of the lower that the sandbox did not have; never called for paths below such a path. */
  hidden: (path: string) => boolean;
  isOpaque: (path: string) => boolean;
  limits: UpperLimits;
}): UpperListing {
  using upper = openRoot(input.upper);
  using lower = openLowers(typeof input.lower === 'string' ? [input.lower] : input.lower);
  const walk: Walk = {
    ...input,
    found: { entries: [], directories: [], removed: [], refused: [] },
    upperSeen: 0,
    lowerSeen: 0,
  };
  walkUpper(walk, { upper, lower, at: '', depth: 1, opaque: false });
  return walk.found;
}

/** The directories that listUpper will read, to be checked for the opaque mark. Looks at no file. */
export function upperDirectories(upper: string, limits: UpperLimits): string[] {
  using root = openRoot(upper);
  const found: string[] = [];
  let seen = 0;
  const visit = (directory: Directory, at: string, depth: number): void => {
    const listed = listNames(directory, limits, { seen, at, depth });
    seen += listed.length;
    for (const { name, isDirectory } of listed) {
      if (!isDirectory || whyNameRefused(name)) continue;
      const path = pathOf(at, name);
      if (!mayEnter(directory.lstat(name)?.mode)) continue;
      found.push(path);
      using child = directory.child(name);
      visit(child, path, depth + 1);
    }
  };
  visit(root, '', 1);
  return found;
}

interface Walk {
  readonly hidden: (path: string) => boolean;
  readonly isOpaque: (path: string) => boolean;
  readonly limits: UpperLimits;
  readonly found: { entries: UpperEntry[]; directories: string[]; removed: string[]; refused: Refusal[] };
  upperSeen: number;
  lowerSeen: number;
}

type Stats = NonNullable<ReturnType<Directory['lstat']>>;

interface Place {
  readonly upper: Directory;
  /** Null if the sandbox saw no directory of the lower here. */
  readonly lower: LowerDirectory | null;
  readonly at: string;
  readonly depth: number;
  /** True if this directory hides the lower. Inherited: a directory made inside an opaque one has no mark itself. */
  readonly opaque: boolean;
}

function walkUpper(walk: Walk, place: Place): void {
  const { upper, lower, at, depth } = place;
  const listed = listNames(upper, walk.limits, { seen: walk.upperSeen, at, depth });
  walk.upperSeen += listed.length;
  for (const { name } of listed) {
    const path = pathOf(at, name);
    const refusal = whyNameRefused(name);
    if (refusal) {
      walk.found.refused.push({ path, reason: `${refusal}: never taken` });
      continue;
    }
    const stats = upper.lstat(name);
    if (!stats) throw changedMeanwhile(path);
    const below = lower && !walk.hidden(path) ? lower.lstat(name) : null;
    if (stats.isDirectory()) enterUpper(walk, place, { name, path, mode: stats.mode, below });
    // Only this device deletes; a file whose name begins with ".wh." is an ordinary file.
    else if (isWhiteout(stats)) deleteLower(walk, lower, { name, path, below, depth });
    else if (addWritten(walk, path, stats) && below?.isDirectory())
      deleteLower(walk, lower, { name, path, below, depth });
  }
  if (!lower || !place.opaque) return;
  const kept = new Set(listed.map(({ name }) => name.toString('latin1')));
  for (const { name } of listLower(walk, lower, at, depth)) {
    if (kept.has(name.toString('latin1'))) continue;
    const path = pathOf(at, name);
    deleteLower(walk, lower, { name, path, below: walk.hidden(path) ? null : lower.lstat(name), depth });
  }
}

interface Named {
  readonly name: Buffer;
  readonly path: string;
  /** The entry of the lower under this name, if the sandbox could see it. */
  readonly below: Stats | null;
}

function enterUpper(walk: Walk, place: Place, entry: Named & { mode: bigint }): void {
  const { name, path, below } = entry;
  if (!mayEnter(entry.mode)) {
    walk.found.refused.push({ path, reason: 'a directory that its owner may not read: nothing in it is taken' });
    return;
  }
  if (below && !below.isDirectory()) deleteLower(walk, place.lower, { ...entry, depth: place.depth });
  walk.found.directories.push(path);
  using upper = place.upper.child(name);
  using lower = below?.isDirectory() ? openLower(place.lower, name) : null;
  walkUpper(walk, { upper, lower, at: path, depth: place.depth + 1, opaque: place.opaque || walk.isOpaque(path) });
}

/** False if the entry can never be taken; the file it replaced is then not listed as deleted either. */
function addWritten(walk: Walk, path: string, stats: Stats): boolean {
  const { entries, refused } = walk.found;
  const mode = Number(stats.mode);
  const reason = whyTypeRefused(stats);
  if (reason) {
    refused.push({ path, reason: `${reason}: never taken` });
    return false;
  }
  // Root could read such a file and its owner could not; the listing must not depend on the caller.
  if (stats.isFile() && (mode & 0o400) === 0) {
    refused.push({ path, reason: 'a file that its owner may not read: never taken' });
    return false;
  }
  if (stats.isFile() && (mode & 0o6000) !== 0) {
    refused.push({
      path,
      reason: 'its set-user-id or set-group-id bit is never taken; the file is offered without it',
    });
  }
  entries.push(entryOf(path, 'written', stats));
  return true;
}

function deleteLower(walk: Walk, parent: LowerDirectory | null, entry: Named & { depth: number }): void {
  const { name, path, below, depth } = entry;
  if (!parent || !below) return;
  const refusal = whyNameRefused(name) ?? (below.isDirectory() ? null : whyTypeRefused(below));
  if (refusal) {
    walk.found.refused.push({ path, reason: `${refusal}: never taken` });
    return;
  }
  if (!below.isDirectory()) {
    walk.found.entries.push(entryOf(path, 'deleted', below));
    return;
  }
  using directory = openLower(parent, name);
  if (!directory) return;
  for (const { name: childName } of listLower(walk, directory, path, depth + 1)) {
    const child = pathOf(path, childName);
    if (walk.hidden(child)) continue;
    deleteLower(walk, directory, { name: childName, path: child, below: directory.lstat(childName), depth: depth + 1 });
  }
  walk.found.removed.push(path);
}

function entryOf(path: string, kind: UpperEntry['kind'], stats: Stats): UpperEntry {
  const type = stats.isSymbolicLink() ? 'symlink' : 'file';
  return { path, kind, type, mode: Number(stats.mode) & 0o777, bytes: Number(stats.size) };
}

function whyTypeRefused(stats: Stats): string | null {
  if (stats.isFile() || stats.isSymbolicLink()) return null;
  if (stats.isFIFO()) return 'a named pipe';
  return stats.isSocket() ? 'a socket' : 'a device';
}

export const NOT_UTF8 = 'a name that is not UTF-8';

function whyNameRefused(name: Buffer): string | null {
  if (name.toString('latin1').toLowerCase() === '.git') return 'inside .git';
  return isUtf8(name) ? null : NOT_UTF8;
}

function mayEnter(mode: bigint | undefined): boolean {
  return mode !== undefined && (mode & 0o500n) === 0o500n;
}

function listLower(walk: Walk, lower: LowerDirectory, at: string, depth: number): Listed[] {
  try {
    const listed = listNames(lower, walk.limits, { seen: walk.lowerSeen, at, depth });
    walk.lowerSeen += listed.length;
    return listed;
  } catch (error) {
    if (errorCode(error) !== 'EACCES') throw error;
    walk.found.refused.push({
      path: at,
      reason: 'a directory of yours that you may not read: no deletion in it is taken',
    });
    return [];
  }
}

// The lower is the user's live tree and may change meanwhile: a directory that is gone needs no deletion.
function openLower(parent: LowerDirectory | null, name: Buffer): LowerDirectory | null {
  try {
    return parent?.child(name) ?? null;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errorCode(error) ?? '')) return null;
    throw error;
  }
}

function listNames(
  directory: Pick<Directory, 'list'>,
  limits: UpperLimits,
  from: { seen: number; at: string; depth: number },
): Listed[] {
  if (from.depth > limits.depth) throw tooMuch(`directories are nested more than ${limits.depth} deep`, from.at);
  const left = limits.entries - from.seen;
  const listed = directory.list(left + 1);
  if (listed.length > left) throw tooMuch(`there are more than ${limits.entries} files and directories`, from.at);
  const longest = listed.reduce((bytes, { name }) => Math.max(bytes, name.length), 0);
  if (Buffer.byteLength(from.at) + 1 + longest > PATH_BYTES)
    throw tooMuch(`a path is longer than ${PATH_BYTES} bytes`, from.at);
  return listed.sort((a, b) => Buffer.compare(a.name, b.name));
}

const PATH_BYTES = 4095;

function openRoot(path: string): Directory {
  return orRefuse(path, () => openDirectory(path));
}

function openLowers(paths: readonly string[]): LowerDirectory {
  return orRefuse(paths.join(' or '), () => openMerged(paths));
}

function orRefuse<T>(path: string, open: () => T): T {
  try {
    return open();
  } catch (cause) {
    throw new AgsError(
      'capture.refused',
      `The changes cannot be read: ${path} is not a directory that can be opened as it is named.`,
      {
        hint: 'It must exist, and no part of its path may be a symbolic link.',
        cause,
      },
    );
  }
}

function tooMuch(limit: string, at: string): AgsError {
  return new AgsError('capture.refused', `The changes are too many to be taken out: ${limit}.`, {
    hint: 'Remove unneeded files in the sandbox and review again, or delete the sandbox: ags rm',
    details: { limit, below: at },
  });
}

function changedMeanwhile(path: string): AgsError {
  return new AgsError('capture.refused', 'The changes were still changing while they were read.', {
    hint: 'Wait until the sandbox has ended, then review again.',
    details: { path },
  });
}
