// lib/descend.ts: reaches files below a directory one name at a time, as openat(2) does, so that no step follows a link.
// Invariant: a Directory is pinned by its descriptor. Even if paths are renamed or replaced meanwhile, a call acts in that very
// directory, on a plain name, and never through a symbolic link. Every descriptor is closed when its owner is disposed.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';

export type Name = string | Buffer;

export interface Listed {
  /** Raw bytes: a name on Linux need not be UTF-8. */
  readonly name: Buffer;
  readonly isDirectory: boolean;
}

export interface NewFile {
  readonly chmod?: number;
  readonly chown?: Owner;
}

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** Throws file-system errors with their `code`; a name that contains "/" is EINVAL. */
export interface Directory extends Disposable {
  child(name: Name): Directory;
  /** Creates the directory (EEXIST if the name is taken) and opens it. */
  mkdirChild(name: Name, mode: number): Directory;
  chown(owner: Owner): void;
  stat(): fs.BigIntStats;
  /** Null when nothing has this name. */
  lstat(name: Name): fs.BigIntStats | null;
  /** At most `max` names, in no order; a caller that gets exactly `max` must assume there are more. */
  list(max: number): Listed[];
  /** EINVAL unless it is a regular file, EFBIG when it has more than `maxBytes`. */
  readFile(name: Name, maxBytes: number): Buffer;
  /** SHA-256 of a regular file, in hexadecimal. */
  digest(name: Name): string;
  readlink(name: Name): Buffer;
  /** A new file, synced to disk; if anything fails, no file is left. `chmod` sets the mode without regard to the umask. */
  writeNew(name: Name, bytes: Buffer, mode: number, more?: NewFile): void;
  /** Like writeNew, but not synced: the caller gets the open file. */
  writeOpen(name: Name, bytes: Buffer, mode: number, more?: NewFile): number;
  symlinkNew(name: Name, target: Name, owner?: Owner): void;
  /** A copy of a regular file, as a new file in another directory that only its owner may read. Returns the digest. */
  copyTo(name: Name, directory: Directory, as: Name): string;
  rename(from: Name, to: Name): void;
  /** Like rename for a name that must be free: EEXIST instead of replacing. `from` stays and is to be unlinked. */
  link(from: Name, to: Name): void;
  unlink(name: Name): void;
  rmdir(name: Name): void;
  fsync(): void;
  /** The path of a name below the pinned directory, for calls that this interface lacks. It follows a link at its end. */
  address(name: Name): Buffer;
}

/** The path must be the real one: ELOOP if it is a symbolic link or leads through one. */
export function openDirectory(path: string): Directory {
  const fd = fs.openSync(path, PIN);
  try {
    // The kernel's own name for what was opened. It differs when any component of the path was a link.
    if (fs.readlinkSync(`/proc/self/fd/${fd}`) !== path) throw failure('ELOOP', 'leads through a symbolic link', path);
  } catch (error) {
    fs.closeSync(fd);
    throw error;
  }
  return directory(fd);
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
// Node does not export O_PATH. It also opens directories that may be entered but not listed.
const O_PATH = 0o10000000;
const PIN = O_PATH | O_DIRECTORY | O_NOFOLLOW;
const CREATE = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
// Opening a fifo must not wait for a writer.
const READ = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;

function directory(fd: number): Directory {
  let open = true;
  const here = (): string => {
    // A closed descriptor's number may already belong to another directory.
    if (!open) throw failure('EBADF', 'the directory is closed', String(fd));
    return `/proc/self/fd/${fd}`;
  };
  const at = (name: Name): Buffer => Buffer.concat([Buffer.from(`${here()}/`), plainName(name)]);
  const self: Directory = {
    child: (name) => directory(fs.openSync(at(name), PIN)),
    mkdirChild(name, mode) {
      fs.mkdirSync(at(name), { mode });
      return self.child(name);
    },
    chown: (owner) => fs.chownSync(here(), owner.uid, owner.gid),
    stat: () => fs.statSync(here(), { bigint: true }),
    lstat: (name) => fs.lstatSync(at(name), { bigint: true, throwIfNoEntry: false }) ?? null,
    list: (max) => list(here(), max),
    readFile: (name, maxBytes) => withFile(at(name), READ, (file) => readAll(file, maxBytes, String(name))),
    digest: (name) =>
      withFile(at(name), READ, (file) => {
        regularSize(file, String(name));
        return digest(file);
      }),
    readlink: (name) => fs.readlinkSync(at(name), { encoding: 'buffer' }),
    writeNew(name, bytes, mode, more) {
      const file = self.writeOpen(name, bytes, mode, more);
      try {
        fs.fsyncSync(file);
      } catch (error) {
        fs.unlinkSync(at(name));
        throw error;
      } finally {
        fs.closeSync(file);
      }
    },
    writeOpen(name, bytes, mode, more = {}) {
      const file = fs.openSync(at(name), CREATE, mode);
      try {
        fs.writeFileSync(file, bytes);
        if (more.chown) fs.fchownSync(file, more.chown.uid, more.chown.gid);
        if (more.chmod !== undefined) fs.fchmodSync(file, more.chmod);
        return file;
      } catch (error) {
        fs.closeSync(file);
        fs.unlinkSync(at(name));
        throw error;
      }
    },
    symlinkNew(name, target, owner) {
      fs.symlinkSync(target, at(name));
      if (owner) fs.lchownSync(at(name), owner.uid, owner.gid);
    },
    copyTo: (name, to, as) =>
      withFile(at(name), READ, (from) => {
        regularSize(from, String(name));
        return withFile(
          to.address(as),
          CREATE,
          (file) => digest(from, (bytes) => fs.writeFileSync(file, bytes)),
          0o600,
        );
      }),
    rename: (from, to) => fs.renameSync(at(from), at(to)),
    link: (from, to) => fs.linkSync(at(from), at(to)),
    unlink: (name) => fs.unlinkSync(at(name)),
    rmdir: (name) => fs.rmdirSync(at(name)),
    fsync: () => withFile(`${here()}/.`, O_RDONLY | O_DIRECTORY, (file) => fs.fsyncSync(file)),
    address: at,
    [Symbol.dispose]() {
      if (open) fs.closeSync(fd);
      open = false;
    },
  };
  return self;
}

function plainName(name: Name): Buffer {
  const bytes = Buffer.from(name);
  const dots = bytes.length <= 2 && bytes.every((byte) => byte === 0x2e);
  if (dots || bytes.includes(0x2f) || bytes.includes(0)) throw failure('EINVAL', 'not a plain file name', String(name));
  return bytes;
}

function list(path: string, max: number): Listed[] {
  const found: Listed[] = [];
  // The types allow only text encodings; the call has always accepted 'buffer'. Read in batches, because a directory can have more names
  // than fit in memory.
  const stream = fs.opendirSync(path, { encoding: 'buffer' as BufferEncoding, bufferSize: 512 });
  try {
    for (let entry = stream.readSync(); entry && found.length < max; entry = stream.readSync()) {
      found.push({ name: entry.name as unknown as Buffer, isDirectory: entry.isDirectory() });
    }
  } finally {
    stream.closeSync();
  }
  return found;
}

function withFile<T>(path: Buffer | string, flags: number, use: (file: number) => T, mode?: number): T {
  const file = fs.openSync(path, flags, mode);
  try {
    return use(file);
  } finally {
    fs.closeSync(file);
  }
}

function readAll(file: number, maxBytes: number, name: string): Buffer {
  if (regularSize(file, name) > maxBytes) throw failure('EFBIG', `larger than ${maxBytes} bytes`, name);
  const bytes = fs.readFileSync(file);
  if (bytes.length > maxBytes) throw failure('EFBIG', `larger than ${maxBytes} bytes`, name);
  return bytes;
}

// One buffer for all files: reading is synchronous.
let shared: Buffer | null = null;

function digest(file: number, each: (bytes: Buffer) => void = () => undefined): string {
  const hash = createHash('sha256');
  const chunk = (shared ??= Buffer.allocUnsafeSlow(1024 * 1024));
  for (let read = fs.readSync(file, chunk); read > 0; read = fs.readSync(file, chunk)) {
    const bytes = chunk.subarray(0, read);
    hash.update(bytes);
    each(bytes);
  }
  return hash.digest('hex');
}

function regularSize(file: number, name: string): number {
  const stats = fs.fstatSync(file);
  if (!stats.isFile()) throw failure('EINVAL', 'not a regular file', name);
  return stats.size;
}

function failure(code: string, problem: string, name: string): Error {
  return Object.assign(new Error(`${code}: ${problem}: ${JSON.stringify(name)}`), { code });
}
