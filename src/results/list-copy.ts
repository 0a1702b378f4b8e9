// results/list-copy.ts: lists what changed in a copied workspace, in the same form as for an overlay's upper.
// The copy keeps the times of the originals, so an unwritten file has the same size and time.
// A later change on the host also shows as a write here; the comparison of contents corrects that afterwards.
import { isUtf8 } from 'node:buffer';
import { lstatSync, readdirSync, type BigIntStats } from 'node:fs';
import { basename, join } from 'node:path';
import type { Refusal } from '../protocol/changes.ts';
import { AgsError } from '../protocol/errors.ts';
import { errorCode } from '../lib/error-code.ts';
import { pathOf } from '../lib/byte-path.ts';
import { openDirectory, type Directory } from '../lib/descend.ts';
import { openMerged, type LowerDirectory } from '../lib/merged.ts';
import { READ_BY_GIT } from '../git/ignored.ts';
import { NOT_UTF8, UPPER_LIMITS, type UpperEntry, type UpperListing } from '../review/upper.ts';

export function listCopy(input: {
  copy: string;
  /** The project, or the layers that the copy was made from, topmost first. */
  original: readonly string[];
  hidden: (path: string) => boolean;
}): UpperListing {
  const entries: UpperEntry[] = [];
  const removed: string[] = [];
  const refused: Refusal[] = [];
  let seen = 0;

  using original = openMerged(input.original);

  const visit = (dir: string, lower: LowerDirectory | null): void => {
    const here = new Set(names(dir, lower));
    const there = new Set(namesOf(lower));
    for (const name of new Set([...here, ...there])) {
      const path = dir === '' ? name : `${dir}/${name}`;
      if (path === '.git' || input.hidden(path)) continue;
      if (++seen > UPPER_LIMITS.entries)
        throw new AgsError(
          'capture.refused',
          `The workspace has more than ${UPPER_LIMITS.entries} files; a full copy of it cannot be compared.`,
        );
      if (name === '.git') {
        if (!there.has(name)) refused.push({ path, reason: 'Inside .git: never taken.' });
        continue;
      }
      compare(path, here.has(name), there.has(name) ? lower : null);
    }
  };
  /** An unchanged file may have any name; no other one is taken under a name that is not UTF-8. */
  const names = (dir: string, lower: LowerDirectory | null): string[] =>
    listed(join(input.copy, dir)).flatMap((name) => {
      if (isUtf8(name)) return name.toString('utf8');
      const path = pathOf(dir, name);
      const now = lstatIn(input.copy, Buffer.concat([Buffer.from(dir === '' ? '' : `${dir}/`), name]));
      const before = lower?.lstat(name) ?? null;
      if (now !== undefined && (before === null || !sameFile(now, before)) && !input.hidden(path))
        refused.push({ path, reason: `${NOT_UTF8}: never taken` });
      return [];
    });
  const compare = (path: string, isHere: boolean, lower: LowerDirectory | null): void => {
    const now = isHere ? lstatSync(join(input.copy, path), { bigint: true }) : null;
    const before = lower?.lstat(basename(path)) ?? null;
    if (before !== null && (now === null || before.isDirectory() !== now.isDirectory())) deleted(path, before, lower);
    if (now === null) return;
    // As in an overlay: a file that its owner cannot read is never taken out, not even by root.
    const needed = now.isDirectory() ? 0o500 : 0o400;
    if (!now.isSymbolicLink() && (Number(now.mode) & needed) !== needed)
      return void refused.push({ path, reason: 'Its permissions do not let its owner read it.' });
    if (now.isDirectory()) {
      using child = before?.isDirectory() === true ? openBelow(lower, path) : null;
      return visit(path, child);
    }
    if (!now.isFile() && !now.isSymbolicLink())
      return void refused.push({ path, reason: 'It is a device, a pipe or a socket.' });
    if (before !== null && sameFile(now, before)) return;
    entries.push({
      path,
      kind: 'written',
      type: now.isFile() ? 'file' : 'symlink',
      mode: Number(now.mode) & 0o777,
      bytes: Number(now.size),
    });
  };
  const deleted = (path: string, before: BigIntStats, lower: LowerDirectory | null): void => {
    if (!before.isDirectory())
      return void entries.push({
        path,
        kind: 'deleted',
        type: before.isSymbolicLink() ? 'symlink' : 'file',
        mode: Number(before.mode) & 0o777,
        bytes: Number(before.size),
      });
    using directory = openBelow(lower, path);
    for (const name of namesOf(directory)) {
      const stats = input.hidden(`${path}/${name}`) ? null : (directory?.lstat(name) ?? null);
      if (stats !== null) deleted(`${path}/${name}`, stats, directory);
    }
    removed.push(path);
  };

  visit('', original);
  return { entries, directories: [], removed, refused };
}

/** Finds named pipes in place of git's rule files, in every directory of a copy. Git cannot read a directory that cannot be listed either. */
export function pipesForRules(copy: string): Refusal[] {
  const found: Refusal[] = [];
  let seen = 0;
  const visit = (directory: Directory, at: string): void => {
    const listed = orNothing(() => directory.list(COPY_ENTRIES - seen), []);
    seen += listed.length;
    if (seen >= COPY_ENTRIES)
      throw new AgsError('capture.refused', `The workspace has more than ${COPY_ENTRIES} files.`);
    for (const { name, isDirectory } of listed) {
      const path = `${at}${name.toString('utf8')}`;
      if (isDirectory && path !== '.git') {
        using child = orNothing(() => directory.child(name), null);
        if (child !== null) visit(child, `${path}/`);
      } else if (READ_BY_GIT.test(path) && directory.lstat(name)?.isFIFO() === true)
        found.push({ path, reason: 'a named pipe: never taken' });
    }
  };
  using root = openDirectory(copy);
  visit(root, '');
  return found;
}

const COPY_ENTRIES = 1_000_000;

/** The claimed sizes of these paths of a copy. Paths are latin1 strings, one character per byte. */
export function sizesInCopy(copy: string, paths: readonly string[]): { path: string; bytes: number }[] {
  return paths.map((path) => ({ path, bytes: Number(lstatIn(copy, Buffer.from(path, 'latin1'))?.size ?? 0) }));
}

function lstatIn(copy: string, path: Buffer): BigIntStats | undefined {
  const at = Buffer.concat([Buffer.from(`${copy}/`), path]);
  return lstatSync(at, { bigint: true, throwIfNoEntry: false });
}

/** Those of these paths that are unchanged since the copy. Paths are latin1 strings, one character per byte. */
export function asCopied(copy: string, original: readonly string[], paths: readonly string[]): ReadonlySet<string> {
  using root = openMerged(original);
  return new Set(
    paths.filter((path) => {
      const parts = path.split('/').map((part) => Buffer.from(part, 'latin1'));
      const before = lstatBelow(root, parts);
      const now = lstatIn(copy, Buffer.from(path, 'latin1'));
      return before !== null && now !== undefined && sameFile(now, before);
    }),
  );
}

function lstatBelow(directory: LowerDirectory, parts: readonly Buffer[]): BigIntStats | null {
  const [name, ...rest] = parts;
  if (name === undefined) return null;
  if (rest.length === 0) return directory.lstat(name);
  if (directory.lstat(name)?.isDirectory() !== true) return null;
  using child = directory.child(name);
  return lstatBelow(child, rest);
}

function listed(dir: string): Buffer[] {
  return orNothing(() => readdirSync(dir, { encoding: 'buffer' }), []);
}

function orNothing<T>(look: () => T, nothing: T): T {
  try {
    return look();
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP'].includes(errorCode(error) ?? '')) return nothing;
    throw error;
  }
}

function namesOf(directory: LowerDirectory | null): string[] {
  return orNothing(() => directory?.list(UPPER_LIMITS.entries + 1).map(({ name }) => name.toString('utf8')) ?? [], []);
}

// The user's tree may change meanwhile: a directory that is gone needs no deletion.
function openBelow(parent: LowerDirectory | null, path: string): LowerDirectory | null {
  return orNothing(() => parent?.child(basename(path)) ?? null, null);
}

function sameFile(a: BigIntStats, b: BigIntStats): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && (a.mode & 0o170100n) === (b.mode & 0o170100n);
}
