// review/host.ts: finds a path in the user's project without following a link, and reads its state.
// Invariant: a Route holds an open descriptor for every directory of its path. Even if these are renamed, it creates and
// removes files only in the directories that it has checked.
import { errorCode } from '../lib/error-code.ts';
import { openDirectory, type Directory, type Owner } from '../lib/descend.ts';
import { visible } from '../lib/sanitize.ts';
import { AgsError } from '../protocol/errors.ts';
import { inspectName } from './names.ts';

/** Plain text and numbers, so that it can be stored. Equal states mean equal content, unless the clock was set back. */
export interface HostState {
  readonly type: 'file' | 'symlink' | 'directory' | 'other';
  /** Permission bits, including set-user-id, set-group-id and sticky. */
  readonly mode: number;
  readonly size: number;
  readonly mtimeNs: string;
  readonly ctimeNs: string;
  readonly ino: string;
  readonly dev: string;
}

/** Null if nothing is there, also if the path leads through a link or a file. */
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
  /** The innermost existing directory of the path; after `make`, the one that holds `name`. */
  readonly parent: Directory;
  readonly name: string;
  /** Directories of the path that do not exist. */
  readonly missing: readonly string[];
  /** Why a link or a file blocks the path; null if none does. */
  readonly blocked: string | null;
  /** Creates the missing directories. `unmake` removes those of them that are empty. */
  make(): void;
  unmake(): void;
  /** Removes empty directories of the path that `wanted` names, innermost first; stops at the first that it must keep. */
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

/** As root, a new file gets the owner of its directory; other callers own what they create. */
export function giveOwner(place: { uid: bigint; gid: bigint }): Owner | undefined {
  return process.geteuid?.() === 0 ? { uid: Number(place.uid), gid: Number(place.gid) } : undefined;
}

/** A replacement keeps the owner of the replaced file, as far as the caller may set it: everyone but root can set only the group. */
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
    if (!child) return `"${path}" was replaced on your side at the same time.`;
    chain.push(child);
  }
  return null;
}

// Opening fails if the directory was replaced by a link after the check.
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
    // An empty directory that cannot be removed does no harm.
    if (errorCode(error) === undefined) throw error;
    return false;
  }
}

function chainClosed(): never {
  throw new Error('the route is closed');
}
