// test/git/hostile-pack.ts: builds git packs byte by byte that git itself would not write.
import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';

const TYPES = { commit: 1, tree: 2, blob: 3 } as const;

export interface PackObject {
  readonly type: keyof typeof TYPES;
  readonly data: Buffer;
  /** The size in the header, if not the true one. */
  readonly claims?: number;
}

export interface PackFlaws {
  readonly version?: number;
  readonly count?: number;
  readonly trailer?: Buffer;
  readonly extra?: Buffer;
}

export function makePack(objects: readonly PackObject[], flaws: PackFlaws = {}): Buffer {
  const header = Buffer.alloc(12);
  header.write('PACK', 'latin1');
  header.writeUInt32BE(flaws.version ?? 2, 4);
  header.writeUInt32BE(flaws.count ?? objects.length, 8);
  const body = Buffer.concat([
    header,
    ...objects.flatMap(({ type, data, claims }) => [
      entryHeader(TYPES[type], claims ?? data.length),
      deflateSync(data),
    ]),
  ]);
  return Buffer.concat([
    body,
    flaws.extra ?? Buffer.alloc(0),
    flaws.trailer ?? createHash('sha1').update(body).digest(),
  ]);
}

// The first byte has the type and four bits of the size; each further byte has seven bits and a continuation bit.
function entryHeader(type: number, size: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt(size) >> 4n;
  let byte = (type << 4) | Number(BigInt(size) & 15n);
  while (rest > 0n) {
    bytes.push(byte | 0x80);
    byte = Number(rest & 127n);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, byte]);
}

export function objectId({ type, data }: PackObject): string {
  return createHash('sha1').update(`${type} ${data.length}\0`).update(data).digest('hex');
}

export function blob(text: string | Buffer): PackObject {
  return { type: 'blob', data: Buffer.from(text) };
}

/** Writes entries unchecked, in the given order. */
export function tree(
  entries: readonly (readonly [mode: string, name: string, object: PackObject | string])[],
): PackObject {
  return {
    type: 'tree',
    data: Buffer.concat(
      entries.map(([mode, name, object]) =>
        Buffer.concat([
          Buffer.from(`${mode} ${name}\0`),
          Buffer.from(typeof object === 'string' ? object : objectId(object), 'hex'),
        ]),
      ),
    ),
  };
}

export function commit(of: PackObject, message = 'captured'): PackObject {
  return {
    type: 'commit',
    data: Buffer.from(`tree ${objectId(of)}\nauthor a <a@b> 0 +0000\ncommitter a <a@b> 0 +0000\n\n${message}\n`),
  };
}
