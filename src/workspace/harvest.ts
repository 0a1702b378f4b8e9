// workspace/harvest.ts: from what setup commands have left in a workspace to a layer: only what the commit does not have.
// Invariant: what a sandbox wrote is walked by descriptor, by name and type; nothing in it is read, and no link is followed.
// So the layer fits every commit that has nothing at these paths.
import { chmodSync, renameSync } from 'node:fs';
import { openDirectory, type Directory, type Listed } from '../lib/descend.ts';
import { openMerged, type LowerDirectory } from '../lib/merged.ts';

export interface Harvest {
  /** What was added: files, links and whole directories, none of which the commit has. */
  readonly roots: readonly string[];
  /** Directories that the commit has too, in which something was added. */
  readonly shared: readonly string[];
}

export function harvest(input: {
  /** What the sandbox wrote. */
  from: string;
  /** The layers of the commit, topmost first. */
  base: readonly string[];
  /** Empty, and ours. */
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

/** True: something was added here. */
function take(
  place: Place,
  owner: { uid: number; gid: number } | null,
  found: { roots: string[]; shared: string[] },
): boolean {
  const { from, base, to, at } = place;
  let any = false;
  for (const { name, isDirectory } of listed(from)) {
    // A name that is no text cannot be asked for later; git's own directory is not part of the files.
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

/** A directory whose owner may not write in it cannot be moved: its entry ".." would change. */
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
