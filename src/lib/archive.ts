// lib/archive.ts: a tar archive of a few files with known names, which any tar program can list.
// Invariant: a header is accepted only if it is, byte for byte, the one that we would have written for its name and size. So there are no
// links, devices, paths, owners or extensions, and only a name and a size have to be parsed.
import { createHash } from 'node:crypto';
import { fstatSync, readSync, writeSync } from 'node:fs';
import { Readable } from 'node:stream';
import { BLOCK, headerBytes, headerText, tarHeader } from './tar-header.ts';

export interface Member {
  readonly name: string;
  readonly bytes: number;
}

export interface HashedMember extends Member {
  readonly sha256: string;
}

export interface FoundMember extends Member {
  /** Offset of its content. */
  readonly at: number;
}

/** Eleven octal digits. */
const MAX_BYTES = 8 ** 11 - 1;

/** Writes from the start of an empty file; the archive is complete after `end`. */
export function createArchive(fd: number): {
  add(name: string, content: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<HashedMember>;
  end(): void;
} {
  let at = 0;
  const write = (bytes: Buffer, place: number): void => {
    for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done, bytes.length - done, place + done);
  };
  return {
    async add(name, content) {
      const start = at + BLOCK;
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const chunk of content) {
        if (bytes + chunk.length > MAX_BYTES) throw new RangeError(`${name} is larger than an archive can hold`);
        write(chunk, start + bytes);
        hash.update(chunk);
        bytes += chunk.length;
      }
      // The size is in the header before the content, and known only now.
      write(headerOf({ name, bytes }), at);
      at = start + padded(bytes);
      if (padded(bytes) > bytes) write(Buffer.alloc(padded(bytes) - bytes), start + bytes);
      return { name, bytes, sha256: hash.digest('hex') };
    },
    end: () => write(Buffer.alloc(2 * BLOCK), at),
  };
}

/** Returns the members, or the problem as part of a sentence. Every name must be known and occur once. */
export function listArchive(
  fd: number,
  isKnown: (name: string) => boolean,
): ReadonlyMap<string, FoundMember> | { readonly problem: string } {
  const { size } = fstatSync(fd);
  const found = new Map<string, FoundMember>();
  const header = Buffer.alloc(BLOCK);
  for (let at = 0; ;) {
    if (at + 2 * BLOCK > size) return { problem: 'it ends too early' };
    readWhole(fd, header, at);
    if (header.every((byte) => byte === 0)) {
      readWhole(fd, header, at + BLOCK);
      const isEnd = at + 2 * BLOCK === size && header.every((byte) => byte === 0);
      return isEnd ? found : { problem: 'it has data after its end' };
    }
    const name = headerText(header, 0, 100);
    const bytes = headerBytes(header);
    if (!isKnown(name) || !Number.isSafeInteger(bytes) || !headerOf({ name, bytes }).equals(header))
      return { problem: 'it contains an entry that no export has' };
    if (found.has(name)) return { problem: `it contains ${name} twice` };
    found.set(name, { name, bytes, at: at + BLOCK });
    at += BLOCK + padded(bytes);
  }
}

/** The caller keeps and closes the descriptor. */
export function readMember(fd: number, member: FoundMember): Readable {
  return Readable.from(pieces(fd, member), { objectMode: false });
}

function* pieces(fd: number, { at, bytes }: FoundMember): Generator<Buffer> {
  for (let done = 0; done < bytes;) {
    const piece = Buffer.alloc(Math.min(PIECE, bytes - done));
    const read = readSync(fd, piece, 0, piece.length, at + done);
    if (read === 0) return;
    done += read;
    yield piece.subarray(0, read);
  }
}

const PIECE = 256 * 1024;

function readWhole(fd: number, into: Buffer, at: number): void {
  for (let done = 0; done < into.length;) {
    const read = readSync(fd, into, done, into.length - done, at + done);
    if (read === 0) {
      into.fill(0xff, done);
      return;
    }
    done += read;
  }
}

function padded(bytes: number): number {
  return Math.ceil(bytes / BLOCK) * BLOCK;
}

function headerOf({ name, bytes }: Member): Buffer {
  return tarHeader({ name, bytes, mode: 0o600, kind: 'file', prefix: '', devices: '' });
}
