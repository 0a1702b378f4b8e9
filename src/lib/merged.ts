// lib/merged.ts: several directories merged as overlayfs merges them: the first directory that has a name decides, directories of the
// same name are merged, and a whiteout (a character device 0:0) ends the search.
// Invariant: as in descend.ts, one name at a time and never through a link.
import type { BigIntStats } from 'node:fs';
import { openDirectory, type Directory, type Listed, type Name } from './descend.ts';

/** The read-only part of a Directory. */
export type LowerDirectory = Pick<Directory, 'lstat' | 'list' | typeof Symbol.dispose> & {
  child(name: Name): LowerDirectory;
};

/** Topmost first. */
export function openMerged(paths: readonly string[]): LowerDirectory {
  const opened: Directory[] = [];
  try {
    for (const path of paths) opened.push(openDirectory(path));
  } catch (error) {
    for (const directory of opened) directory[Symbol.dispose]();
    throw error;
  }
  return opened.length === 1 && opened[0] !== undefined ? opened[0] : merge(opened);
}

export function isWhiteout(stats: BigIntStats): boolean {
  return stats.isCharacterDevice() && stats.rdev === 0n;
}

function merge(directories: readonly Directory[]): LowerDirectory {
  const find = (name: Name): { stats: BigIntStats; among: Directory[] } | null => {
    let first: BigIntStats | null = null;
    const among: Directory[] = [];
    for (const directory of directories) {
      const stats = directory.lstat(name);
      if (stats === null) continue;
      if (isWhiteout(stats) || (first !== null && !stats.isDirectory())) break;
      first ??= stats;
      among.push(directory);
      if (!stats.isDirectory()) break;
    }
    return first === null ? null : { stats: first, among };
  };
  return {
    lstat: (name) => find(name)?.stats ?? null,
    child(name) {
      const children = (find(name)?.among ?? directories.slice(0, 1)).map((directory) => directory.child(name));
      return children.length === 1 && children[0] !== undefined ? children[0] : merge(children);
    },
    list(max) {
      const seen = new Map<string, Listed | null>();
      for (const directory of directories)
        for (const listed of directory.list(max)) {
          const key = listed.name.toString('latin1');
          if (seen.has(key)) continue;
          const gone = !listed.isDirectory && directories.length > 1 && find(listed.name) === null;
          seen.set(key, gone ? null : listed);
        }
      return [...seen.values()].filter((listed) => listed !== null).slice(0, max);
    },
    [Symbol.dispose]() {
      for (const directory of directories) directory[Symbol.dispose]();
    },
  };
}
