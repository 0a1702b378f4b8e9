// git/object-stores.ts: where the objects of a repository are, and which of those places a sandbox may see.
// Invariant: a store is shown only if it is part of the git directory, or if the user shows the place anyway. A git directory
// that somebody else packed can name any other repository, and nothing on disk tells that from a clone that borrows.
import { lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { isWithin } from '../lib/files.ts';
import { visible } from '../lib/sanitize.ts';
import { realPath } from './belonging.ts';

export interface Places {
  /** The work tree: what is in it is in the sandbox at the same place. */
  readonly root: string;
  /** The git directory with all that belongs to it. */
  readonly commonDir: string;
  /** Shown by the user's own wish: `mounts` of the configuration. */
  readonly shown: readonly string[];
}

export interface Store {
  readonly path: string;
  /** It is there already, in the workspace. */
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
    // Relative to where the store really is, as git has it.
    const lenders = borrowedBy(path).map((line) => (line.startsWith('/') ? line : join(path, line)));
    return [{ path, inWorkspace }, ...lenders.flatMap((lender) => follow(lender, false))];
  }
}

/** Any directory may be named as a store: only what is one is shown. It holds nothing but packs and directories of two digits. */
function isObjectStore(path: string): boolean {
  try {
    return readdirSync(path).every((name) => /^(pack|info|[0-9a-f]{2}|maintenance\.lock|tmp_.*)$/.test(name));
  } catch {
    // No directory, or one that the caller may not read; then git has no use of it either.
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
      hint: `If the sandbox may read all of it: --mount ${path}, or "mounts" in your configuration.\nTo do without: git repack -a -d && rm -f .git/objects/info/alternates`,
    },
  );
}
