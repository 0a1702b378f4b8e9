// tasks/list-copy.ts: what changed in a copied workspace, in the same words as an overlay's upper.
// The copy carries the times of the originals, so a file that was not written has the same size and time.
// A change on the host since then shows as a write here too; comparing contents sorts that out afterwards.
import { lstatSync, readdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import type { Refusal } from '../protocol/changes.ts';
import { AgsError } from '../protocol/errors.ts';
import { UPPER_LIMITS, type UpperEntry, type UpperListing } from '../review/upper.ts';

export function listCopy(input: { copy: string; original: string; hidden: (path: string) => boolean }): UpperListing {
  const entries: UpperEntry[] = [];
  const removed: string[] = [];
  const refused: Refusal[] = [];
  let seen = 0;

  const visit = (dir: string): void => {
    const here = new Set(names(join(input.copy, dir)));
    const there = new Set(names(join(input.original, dir)));
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
      compare(path, here.has(name), there.has(name));
    }
  };
  const compare = (path: string, isHere: boolean, isThere: boolean): void => {
    const now = isHere ? lstatSync(join(input.copy, path)) : null;
    const before = isThere ? lstatSync(join(input.original, path)) : null;
    if (before !== null && (now === null || before.isDirectory() !== now.isDirectory())) deleted(path, before);
    if (now === null) return;
    // As in an overlay: what its owner cannot read cannot be taken out, whoever looks.
    const needed = now.isDirectory() ? 0o500 : 0o400;
    if (!now.isSymbolicLink() && (now.mode & needed) !== needed)
      return void refused.push({ path, reason: 'Its permissions do not let its owner read it.' });
    if (now.isDirectory()) return visit(path);
    if (!now.isFile() && !now.isSymbolicLink())
      return void refused.push({ path, reason: 'It is a device, a pipe or a socket.' });
    if (before !== null && sameFile(now, before)) return;
    entries.push({
      path,
      kind: 'written',
      type: now.isFile() ? 'file' : 'symlink',
      mode: now.mode & 0o777,
      bytes: now.size,
    });
  };
  const deleted = (path: string, before: Stats): void => {
    if (!before.isDirectory())
      return void entries.push({
        path,
        kind: 'deleted',
        type: before.isSymbolicLink() ? 'symlink' : 'file',
        mode: before.mode & 0o777,
        bytes: before.size,
      });
    for (const name of names(join(input.original, path)))
      if (!input.hidden(`${path}/${name}`)) deleted(`${path}/${name}`, lstatSync(join(input.original, path, name)));
    removed.push(path);
  };

  visit('');
  return { entries, directories: [], removed, refused };
}

function names(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw error;
  }
}

function sameFile(a: Stats, b: Stats): boolean {
  return (
    a.size === b.size && Math.floor(a.mtimeMs) === Math.floor(b.mtimeMs) && (a.mode & 0o170100) === (b.mode & 0o170100)
  );
}
