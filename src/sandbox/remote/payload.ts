// sandbox/remote/payload.ts: files sent to a remote machine and back, as records that the file sync there writes and reads.
// Invariant: returned files are an agent's. They are written by descriptor, never through a link, only below directories of the run, as
// plain files, directories and links. Any other record ends the transfer, which can be repeated.
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  futimesSync,
  openSync,
  readSync,
  realpathSync,
  writeSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { openDirectory, type Directory, type Name, type Owner } from '../../lib/descend.ts';
import { AgsError } from '../../protocol/errors.ts';
import { formatSize } from '../../lib/units.ts';

/** One file or directory that a sandbox sees; `at` is its number on the remote machine. */
export interface Payload {
  readonly at: number;
  readonly what: { readonly from: string } | { readonly content: Buffer };
}

const HEAD = 27;
const PIECE = 256 * 1024;
const MAX_PATH = 4096;
const MAX_ENTRIES = 2_000_000;

interface Record {
  readonly kind: string;
  readonly mode: number;
  readonly seconds: bigint;
  readonly nanoseconds: number;
  readonly size: number;
  readonly path: Buffer;
}

function encode({ kind, mode, seconds, nanoseconds, size, path }: Record): Buffer {
  if (path.length > MAX_PATH)
    throw new AgsError('backend.failed', `A path is too long to be sent: ${path.toString('utf8').slice(0, 80)}…`);
  const head = Buffer.alloc(HEAD);
  head.write(kind, 0, 'latin1');
  head.writeUInt32BE(mode, 1);
  head.writeBigInt64BE(seconds, 5);
  head.writeUInt32BE(nanoseconds, 13);
  head.writeBigUInt64BE(BigInt(size), 17);
  head.writeUInt16BE(path.length, 25);
  return Buffer.concat([head, path]);
}

const END: Record = { kind: 'z', mode: 0, seconds: 0n, nanoseconds: 0, size: 0, path: Buffer.alloc(0) };

/** Yields everything to send. Sockets, pipes and devices are left out. */
export function* packPayload(list: readonly Payload[]): Generator<Buffer> {
  for (const { at, what } of list) {
    const path = Buffer.from(String(at));
    if ('content' in what) {
      yield encode({ ...END, kind: 'f', mode: 0o644, size: what.content.length, path });
      if (what.content.length > 0) yield what.content;
      continue;
    }
    const from = realpathSync(what.from);
    using parent = openDirectory(dirname(from));
    yield* packEntry(parent, Buffer.from(basename(from)), path);
  }
  yield encode(END);
}

function* packEntry(parent: Directory, name: Buffer, path: Buffer): Generator<Buffer> {
  const stat = parent.lstat(name);
  if (stat === null) return;
  const times = { seconds: stat.mtimeNs / 1_000_000_000n, nanoseconds: Number(stat.mtimeNs % 1_000_000_000n) };
  const about = { ...END, ...times, mode: Number(stat.mode) & 0o777, path };
  if (stat.isSymbolicLink()) {
    const target = parent.readlink(name);
    yield encode({ ...about, kind: 'l', size: target.length });
    yield target;
  } else if (stat.isFile()) yield* packFile(parent.address(name), about);
  else if (stat.isDirectory()) {
    yield encode({ ...about, kind: 'd' });
    using directory = parent.child(name);
    for (const entry of directory.list(MAX_ENTRIES))
      yield* packEntry(directory, entry.name, Buffer.concat([path, SLASH, entry.name]));
  }
}

const SLASH = Buffer.from('/');
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;

function* packFile(path: Buffer, about: Record): Generator<Buffer> {
  const file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const { size } = fstatSync(file);
    yield encode({ ...about, kind: 'f', size });
    for (let left = size; left > 0;) {
      const piece = Buffer.allocUnsafe(Math.min(PIECE, left));
      const read = readSync(file, piece);
      if (read === 0)
        throw new AgsError('project.changed', 'A file was changed while it was being sent.', { hint: 'Try again.' });
      yield piece.subarray(0, read);
      left -= read;
    }
  } finally {
    closeSync(file);
  }
}

/** Writes remote changes into the directories they were sent from. Resolves after the last record. */
export async function unpackPayload(
  source: AsyncIterable<Buffer>,
  places: ReadonlyMap<number, string>,
  options: { readonly owner: Owner | null; readonly maxBytes: number },
): Promise<void> {
  const bytes = createBytes(source);
  // Directory modes, set after all entries below are written.
  const modes: Modes = new Map();
  using reach = createReach(modes);
  let total = 0;
  for (let entries = 0; ; entries++) {
    const record = await readRecord(bytes);
    if (record.kind === 'z') break;
    total += record.size;
    if (entries > MAX_ENTRIES || total > options.maxBytes) throw tooMuch(options.maxBytes);
    const [first = Buffer.alloc(0), ...path] = splitPath(record.path);
    const place = /^\d{1,4}$/.test(first.toString('latin1')) ? places.get(Number(first.toString('latin1'))) : undefined;
    if (place === undefined) throw broken('a record has an unknown destination');
    const name = path.at(-1);
    if (name === undefined) {
      if (record.kind !== 'd') throw broken('a directory became something else');
      continue;
    }
    const parent = reach.open(place, path.slice(0, -1));
    if (parent === null) {
      if (record.kind === 'x') continue;
      throw broken('an entry is in a directory that does not exist');
    }
    switch (record.kind) {
      case 'x':
        clear(parent, name);
        break;
      case 'd': {
        if (parent.lstat(name)?.isDirectory() !== true) {
          clear(parent, name);
          using made = parent.mkdirChild(name, 0o700);
          if (options.owner !== null) made.chown(options.owner);
        }
        modes.set(keyOf(place, record.path.subarray(first.length + 1)), record.mode);
        break;
      }
      case 'l': {
        if (record.size > MAX_PATH) throw broken('a link is too long');
        clear(parent, name);
        parent.symlinkNew(name, await bytes.take(record.size), options.owner ?? undefined);
        break;
      }
      case 'f':
        clear(parent, name);
        await writeFile(parent, name, record, bytes, options.owner);
        break;
      default:
        throw broken('a record is none of ours');
    }
  }
  using last = createReach(new Map());
  for (const [key, mode] of [...modes].toReversed()) {
    const [place = '', below = ''] = key.split('\0');
    const path = splitPath(Buffer.from(below, 'latin1'));
    const parent = last.open(place, path.slice(0, -1));
    const name = path.at(-1);
    if (parent !== null && name !== undefined && parent.lstat(name)?.isDirectory() === true)
      chmodSync(parent.address(name), mode);
  }
}

async function writeFile(
  parent: Directory,
  name: Buffer,
  record: Record,
  bytes: Bytes,
  owner: Owner | null,
): Promise<void> {
  const file = openSync(parent.address(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (let left = record.size; left > 0;) {
      const piece = await bytes.some(left);
      for (let at = 0; at < piece.length;) at += writeSync(file, piece, at);
      left -= piece.length;
    }
    if (owner !== null) fchownSync(file, owner.uid, owner.gid);
    fchmodSync(file, record.mode);
    futimesSync(file, timeOf(record), timeOf(record));
  } finally {
    closeSync(file);
  }
}

/** Node takes the time in seconds, which is too coarse for its last digits: rounded up, it is never before its millisecond. */
function timeOf({ seconds, nanoseconds }: Record): number {
  return Number(seconds) + (nanoseconds + 500) / 1e9;
}

/** Keys are strings: one array of names per deep directory would fill the memory. */
type Modes = Map<string, number>;

function keyOf(place: string, path: Buffer): string {
  return `${place}\0${path.toString('latin1')}`;
}

interface Reach extends Disposable {
  /**
   * Null: there is no such directory. The result stays open until the next call, and the caller must not close it. The caller may remove
   * entries in it, but neither it nor a directory above it. A directory without owner permissions is opened for the time of the transfer.
   */
  open(place: string, path: readonly Buffer[]): Directory | null;
}

/** Directories kept open on the current path: an agent can nest more of them than there are descriptors. */
const HELD = 256;

/** Consecutive records are mostly close together. Starting at the top for each would take hours with deep directories. */
function createReach(modes: Modes): Reach {
  let at = '';
  const chain: { name: Buffer; directory: Directory | null }[] = [];
  const cut = (length: number): void => {
    for (const { directory } of chain.splice(length)) directory?.[Symbol.dispose]();
  };
  const push = (name: Buffer, directory: Directory): void => {
    chain.push({ name, directory });
    const distant = chain.at(-1 - HELD);
    distant?.directory?.[Symbol.dispose]();
    if (distant !== undefined) distant.directory = null;
  };
  return {
    open(place, path) {
      const differs = path.findIndex((name, i) => chain[i + 1]?.name.equals(name) !== true);
      cut(at === place ? 1 + (differs < 0 ? path.length : differs) : 0);
      if ((chain.at(-1)?.directory ?? null) === null) {
        cut(0);
        at = place;
        push(Buffer.alloc(0), openDirectory(realpathSync(place)));
      }
      for (const [i, name] of path.entries()) {
        if (i + 1 < chain.length) continue;
        const parent = chain.at(-1)?.directory;
        const stat = parent?.lstat(name);
        if (!parent || stat?.isDirectory() !== true) return null;
        const mode = Number(stat.mode) & 0o777;
        if ((mode & 0o700) !== 0o700) {
          const key = keyOf(place, Buffer.concat(path.slice(0, i + 1).flatMap((one) => [SLASH, one])).subarray(1));
          if (!modes.has(key)) modes.set(key, mode);
          chmodSync(parent.address(name), mode | 0o700);
        }
        push(name, parent.child(name));
      }
      return chain.at(-1)?.directory ?? null;
    },
    [Symbol.dispose]: () => cut(0),
  };
}

/** Removes the entry with everything below it. */
function clear(parent: Directory, name: Name): void {
  const stat = parent.lstat(name);
  if (stat === null) return;
  if (!stat.isDirectory()) return parent.unlink(name);
  chmodSync(parent.address(name), 0o700);
  {
    using directory = parent.child(name);
    for (const entry of directory.list(MAX_ENTRIES)) clear(directory, entry.name);
  }
  parent.rmdir(name);
}

async function readRecord(bytes: Bytes): Promise<Record> {
  const head = await bytes.take(HEAD);
  const size = head.readBigUInt64BE(17);
  const length = head.readUInt16BE(25);
  if (size > BigInt(Number.MAX_SAFE_INTEGER) || length > MAX_PATH) throw broken('a record is too large');
  const kind = head.toString('latin1', 0, 1);
  if (size > 0n && kind !== 'f' && kind !== 'l') throw broken('a record is none of ours');
  return {
    kind,
    mode: head.readUInt32BE(1) & 0o777,
    seconds: head.readBigInt64BE(5),
    nanoseconds: head.readUInt32BE(13) % 1_000_000_000,
    size: Number(size),
    path: Buffer.from(await bytes.take(length)),
  };
}

/**
 * Every name is checked again when it is opened. Only the length of a path bounds the number of names: if we refused paths that the
 * remote machine can have, an agent could keep all of its work there with one deep directory.
 */
function splitPath(path: Buffer): Buffer[] {
  if (/(^|\/)\.{0,2}(\/|$)|\0|[^/]{256}/.test(path.toString('latin1'))) throw broken('a path is invalid');
  const names: Buffer[] = [];
  for (let at = 0; at <= path.length;) {
    const slash = path.indexOf(SLASH, at);
    const end = slash < 0 ? path.length : slash;
    names.push(path.subarray(at, end));
    at = end + 1;
  }
  return names;
}

interface Bytes {
  take(size: number): Promise<Buffer>;
  /** At least one byte, at most `most`. */
  some(most: number): Promise<Buffer>;
}

function createBytes(source: AsyncIterable<Buffer>): Bytes {
  const parts = source[Symbol.asyncIterator]();
  let here: Buffer = Buffer.alloc(0);
  const some = async (most: number): Promise<Buffer> => {
    while (here.length === 0) {
      const next = await parts.next();
      if (next.done === true) throw broken('the data ended too early');
      here = next.value;
    }
    const piece = here.subarray(0, most);
    here = here.subarray(piece.length);
    return piece;
  };
  return {
    some,
    async take(size) {
      const pieces: Buffer[] = [];
      for (let left = size; left > 0;) {
        const piece = await some(left);
        pieces.push(piece);
        left -= piece.length;
      }
      return Buffer.concat(pieces);
    },
  };
}

function broken(why: string): AgsError {
  return new AgsError('capture.refused', `Files from the remote engine were refused: ${why}.`, {
    hint: 'The files are still on the remote engine; try again.',
  });
}

function tooMuch(maxBytes: number): AgsError {
  return new AgsError(
    'capture.refused',
    `The sandbox wrote more than ${formatSize(maxBytes)}, the limit for files from a remote engine.`,
    {
      hint: 'Allow more, then try again: --limit disk=20g',
    },
  );
}
