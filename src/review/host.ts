// review/host.ts: find a path of the user's project without following a link, and say what is there.
// Invariant: a Route holds one open descriptor for every directory on its way, so whatever happens to their names,
// what it makes and removes is made and removed in the directories that were looked at.
import { errorCode } from '../lib/error-code.ts';
import { openDirectory, type Directory, type Owner } from '../lib/descend.ts';
import { visible } from '../lib/sanitize.ts';
import { AgsError } from '../protocol/errors.ts';
import { inspectName } from './names.ts';

/** Plain text and numbers, so that it can be stored. Two equal states are, but for clock tricks, the same content. */
export interface HostState {
  readonly type: 'file' | 'symlink' | 'directory' | 'other';
  /** Permission bits, with set-user-id and its like. */
  readonly mode: number;
  readonly size: number;
  readonly mtimeNs: string;
  readonly ctimeNs: string;
  readonly ino: string;
  readonly dev: string;
}

/** Null when nothing is there, which includes a path that leads through a link or a file. */
export function hostState(project: string, path: string): HostState | null {
  if (inspectName(path).refuse !== null) return null;
  using route = openRoute(project, path);
  return route.blocked === null && route.missing.length === 0 ? stateOf(route.parent.lstat(route.name)) : null;
}

export function stateOf(stats: ReturnType<Directory['lstat']>): HostState | null {
  if (!stats) return null;
  const links = stats.isSymbolicLink() ? 'symlink' : 'other';
  return {
    type: stats.isFile() ? 'file' : stats.isDirectory() ? 'directory' : links,
    mode: Number(stats.mode) & 0o7777,
    size: Number(stats.size),
    mtimeNs: String(stats.mtimeNs),
    ctimeNs: String(stats.ctimeNs),
    ino: String(stats.ino),
    dev: String(stats.dev),
  };
}

export interface Route extends Disposable {
  /** The innermost directory of the path that exists; after `make`, the one that holds `name`. */
  readonly parent: Directory;
  readonly name: string;
  /** Directories of the path that do not exist. */
  readonly missing: readonly string[];
  /** Why the path cannot be followed further, if a link or a file stands in the way. */
  readonly blocked: string | null;
  /** Makes what is missing. `unmake` removes it again, as far as it is empty. */
  make(): void;
  unmake(): void;
  /** Removes, from the inside out, directories on the way that are empty and wanted gone; stops at the first that is not. */
  prune(wanted: (path: string) => boolean): void;
}

export function openRoute(project: string, path: string): Route {
  const names = path.split('/');
  const name = names.pop() ?? '';
  const chain = [openProject(project)];
  const close = (): void => chain.splice(0).forEach((directory) => directory[Symbol.dispose]());
  const last = (): Directory => chain.at(-1) ?? chainClosed();
  const pathTo = (depth: number): string => names.slice(0, depth).join('/');
  const made = new Set<string>();
  try {
    const blocked = follow(chain, names);
    return {
      get parent() {
        return last();
      },
      name,
      get missing() {
        return names.slice(chain.length - 1).map((_, index) => pathTo(chain.length + index));
      },
      blocked,
      make() {
        for (const next of names.slice(chain.length - 1)) {
          const parent = last();
          chain.push(parent.mkdirChild(next, 0o755));
          made.add(pathTo(chain.length - 1));
          const owner = giveOwner(parent.stat());
          if (owner) last().chown(owner);
        }
      },
      unmake() {
        this.prune((directory) => made.has(directory));
      },
      prune(wanted) {
        for (let depth = chain.length - 1; depth > 0 && wanted(pathTo(depth)); depth--) {
          if (!removeIfEmpty(chain[depth - 1], names[depth - 1])) return;
        }
      },
      [Symbol.dispose]: close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** Root leaves what it makes to whoever owns the place; others own what they make. */
export function giveOwner(place: { uid: bigint; gid: bigint }): Owner | undefined {
  return process.geteuid?.() === 0 ? { uid: Number(place.uid), gid: Number(place.gid) } : undefined;
}

/** A file that replaces another keeps its owner, as far as the caller may decide that: its group, for all but root. */
export function keepOwner(file: { uid: bigint; gid: bigint }): Owner | undefined {
  const gid = Number(file.gid);
  const mayGive = process.getegid?.() !== gid && process.getgroups?.().includes(gid);
  return giveOwner(file) ?? (mayGive ? { uid: process.geteuid?.() ?? -1, gid } : undefined);
}

function openProject(project: string): Directory {
  try {
    return openDirectory(project);
  } catch (cause) {
    throw new AgsError('project.unsuitable', 'The project directory cannot be opened under the name it had.', {
      hint: `It must be where it was, and no part of its path may be a symbolic link: ${visible(project)}`,
      cause,
    });
  }
}

function follow(chain: Directory[], names: readonly string[]): string | null {
  for (const [index, name] of names.entries()) {
    const here = chain.at(-1) ?? chainClosed();
    const stats = here.lstat(name);
    if (!stats) return null;
    const path = visible(names.slice(0, index + 1).join('/'));
    if (stats.isSymbolicLink())
      return `"${path}" is a symbolic link on your side; nothing is written or deleted through it.`;
    if (!stats.isDirectory()) return `"${path}" is a file on your side, where this change needs a directory.`;
    const child = enter(here, name);
    if (!child) return `"${path}" was replaced on your side in this moment.`;
    chain.push(child);
  }
  return null;
}

// If the directory was swapped for a link since the look at it, opening it fails.
function enter(parent: Directory, name: string): Directory | null {
  try {
    return parent.child(name);
  } catch (error) {
    if (['ENOTDIR', 'ELOOP', 'ENOENT'].includes(errorCode(error) ?? '')) return null;
    throw error;
  }
}

function removeIfEmpty(parent: Directory | undefined, name: string | undefined): boolean {
  try {
    if (parent && name !== undefined) parent.rmdir(name);
    return true;
  } catch (error) {
    // Whatever keeps an empty directory, it does no harm there.
    if (errorCode(error) === undefined) throw error;
    return false;
  }
}

function chainClosed(): never {
  throw new Error('the route is closed');
}
