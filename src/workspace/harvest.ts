// workspace/harvest.ts: moves the files that setup commands added to a workspace into a layer, without those of the commit.
// Such a layer fits every commit that has nothing at these paths.
// Invariant: the sandbox's files are walked by descriptor, by name and type. No content is read and no link is followed.
import { chmodSync, renameSync } from 'node:fs';
import { openDirectory, type Directory, type Listed } from '../lib/descend.ts';
import { openMerged, type LowerDirectory } from '../lib/merged.ts';

export interface Harvest {
  /** Added files, links and whole directories; the commit has none of them. */
  readonly roots: readonly string[];
  /** Directories of the commit in which something was added. */
  readonly shared: readonly string[];
}

export function harvest(input: {
  /** The upper or the copy that the sandbox wrote. */
  from: string;
  /** The layers of the commit, topmost first. */
  base: readonly string[];
  /** An empty directory of ags. */
  to: string;
  owner: { uid: number; gid: number } | null;
}): Harvest {
  using from = openDirectory(input.from);
  using base = openMerged(input.base);
  using to = openDirectory(input.to);
  if (input.owner !== null) to.chown(input.owner);
  const found = { roots: [] as string[], shared: [] as string[] };
  take({ from, base, to, at: '' }, input.owner, found);
  return found;
}

interface Place {
  readonly from: Directory;
  readonly base: LowerDirectory;
  readonly to: Directory;
  readonly at: string;
}

/** Returns true if something was added here. */
function take(
  place: Place,
  owner: { uid: number; gid: number } | null,
  found: { roots: string[]; shared: string[] },
): boolean {
  const { from, base, to, at } = place;
  let any = false;
  for (const { name, isDirectory } of listed(from)) {
    // A name that is not UTF-8 cannot be looked up later. The git directory is not part of the files.
    const text = name.toString('utf8');
    if (!Buffer.from(text).equals(name) || text.toLowerCase() === '.git') continue;
    const path = at === '' ? text : `${at}/${text}`;
    const there = base.lstat(name);
    if (there === null) {
      const stats = from.lstat(name);
      if (stats === null || !(stats.isDirectory() || stats.isFile() || stats.isSymbolicLink())) continue;
      move(place, name, Number(stats.mode) & 0o7777, stats.isDirectory());
      found.roots.push(path);
      any = true;
    } else if (isDirectory && there.isDirectory()) {
      using childFrom = from.child(name);
      using childBase = base.child(name);
      using childTo = to.mkdirChild(name, Number(there.mode) & 0o777);
      if (owner !== null) childTo.chown(owner);
      if (take({ from: childFrom, base: childBase, to: childTo, at: path }, owner, found)) {
        found.shared.push(path);
        any = true;
      } else to.rmdir(name);
    }
  }
  return any;
}

/** A directory that its owner may not write to cannot be moved, because its entry ".." would change. */
function move({ from, to }: Place, name: Buffer, mode: number, isDirectory: boolean): void {
  const locked = isDirectory && (mode & 0o200) === 0;
  if (locked) chmodSync(from.address(name), mode | 0o700);
  renameSync(from.address(name), to.address(name));
  if (locked) chmodSync(to.address(name), mode);
}

const MOST = 1_000_000;

function listed(directory: Directory): Listed[] {
  const all = directory.list(MOST);
  return all.toSorted((a, b) => Buffer.compare(a.name, b.name));
}
