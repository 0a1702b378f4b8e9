// git/object-stores.ts: finds the object stores of a repository, and decides which ones a sandbox may see.
// Invariant: a store is shown only if it is part of the git directory, or if the user mounts it anyway. A git directory that a
// stranger packed can name any other repository, and on disk that looks the same as a clone that borrows objects.
import { lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { isWithin } from '../lib/files.ts';
import { visible } from '../lib/sanitize.ts';
import { realPath } from './belonging.ts';

export interface Places {
  /** The work tree, which the sandbox has at the same path. */
  readonly root: string;
  /** The common git directory. */
  readonly commonDir: string;
  /** Paths that the user mounts: `mounts` of the configuration. */
  readonly shown: readonly string[];
}

export interface Store {
  readonly path: string;
  /** True if the workspace already contains it. */
  readonly inWorkspace: boolean;
}

/** The store of a git directory and those it borrows from, in git's order. */
export function objectStores(gitDir: string, places: Places, seen = new Set<string>()): Store[] {
  return follow(join(gitDir, 'objects'), true);

  function follow(named: string, own: boolean): Store[] {
    const path = realPath(named);
    if (path === null || seen.has(path)) return [];
    seen.add(path);
    if (!(own && path === named ? lstatSync(path).isDirectory() : isObjectStore(path))) return [];
    const ofGit = isWithin(path, places.commonDir);
    const inWorkspace = !ofGit && isWithin(path, places.root);
    if (!ofGit && !inWorkspace && !places.shown.some((dir) => isWithin(path, realPath(dir) ?? dir)))
      throw foreignStore(gitDir, path);
    // As in git, relative to the real path of the store.
    const lenders = borrowedBy(path).map((line) => (line.startsWith('/') ? line : join(path, line)));
    return [{ path, inWorkspace }, ...lenders.flatMap((lender) => follow(lender, false))];
  }
}

/** Any directory can be named as a store, so this checks that it holds only packs, info and directories of two hex digits. */
function isObjectStore(path: string): boolean {
  try {
    return readdirSync(path).every((name) => /^(pack|info|[0-9a-f]{2}|maintenance\.lock|tmp_.*)$/.test(name));
  } catch {
    // It is not a directory, or the caller may not read it; then git cannot use it either.
    return false;
  }
}

function borrowedBy(store: string): string[] {
  const file = realPath(join(store, 'info/alternates'));
  if (file === null || !statSync(file).isFile()) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
}

function foreignStore(gitDir: string, store: string): AgsError {
  const path = visible(store);
  return new AgsError(
    'project.unsuitable',
    `${visible(gitDir)} takes objects from ${path}, which is not part of this project.`,
    {
      hint: `To let the sandbox read all of it: --mount ${path}, or "mounts" in your configuration.\nTo copy the objects instead: git repack -a -d && rm -f .git/objects/info/alternates`,
    },
  );
}
