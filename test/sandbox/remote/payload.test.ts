// test/sandbox/remote/payload.test.ts: files that come back from a remote engine are an agent's: they are written only where they belong.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { packPayload, unpackPayload } from '../../../src/sandbox/remote/payload.ts';

interface Told {
  readonly mode?: number;
  readonly content?: string;
  readonly size?: number;
}

function record(kind: string, path: string, { mode = 0o644, content = '', size }: Told = {}): Buffer {
  const head = Buffer.alloc(27);
  head.write(kind, 0, 'latin1');
  head.writeUInt32BE(mode, 1);
  head.writeBigInt64BE(1_700_000_000n, 5);
  head.writeBigUInt64BE(BigInt(size ?? Buffer.byteLength(content)), 17);
  head.writeUInt16BE(Buffer.byteLength(path), 25);
  return Buffer.concat([head, Buffer.from(path), Buffer.from(content)]);
}

function place(): Disposable & { root: string; home: string } {
  const root = mkdtempSync('/tmp/ags-cargo-');
  const home = join(root, 'home');
  mkdirSync(home);
  writeFileSync(join(root, 'canary'), 'the user’s\n');
  return {
    root,
    home,
    [Symbol.dispose]() {
      // Some files are read-only even for their owner.
      spawnSync('chmod', ['-R', 'u+rwX', root]);
      rmSync(root, { recursive: true, force: true });
    },
  };
}

const unpack = (home: string, records: readonly Buffer[], maxBytes = 1000): Promise<void> =>
  unpackPayload(Readable.from([Buffer.concat([...records, record('z', '')])]), new Map([[2, home]]), {
    owner: null,
    maxBytes,
  });

test('files that were sent and changed remotely come back unchanged', async () => {
  using here = place();
  mkdirSync(join(here.home, 'dir'));
  writeFileSync(join(here.home, 'dir/old'), 'old', { mode: 0o755 });
  writeFileSync(join(here.home, 'stays'), 'stays');
  symlinkSync('dir/old', join(here.home, 'link'));
  // One byte at a time gives the same records.
  const all = Buffer.concat([...packPayload([{ at: 2, what: { from: here.home } }])]);
  rmSync(here.home, { recursive: true });
  mkdirSync(here.home);
  await unpackPayload(Readable.from([...all].map((byte) => Buffer.from([byte]))), new Map([[2, here.home]]), {
    owner: null,
    maxBytes: 1000,
  });
  expect([
    readFileSync(join(here.home, 'dir/old'), 'utf8'),
    lstatSync(join(here.home, 'dir/old')).mode & 0o777,
    readlinkSync(join(here.home, 'link')),
  ]).toEqual(['old', 0o755, 'dir/old']);
  chmodSync(join(here.home, 'dir'), 0o500);
  await unpack(here.home, [
    record('x', '2/dir/old'),
    record('x', '2/not-there/at-all'),
    record('x', '2/link'),
    record('d', '2/link'),
    record('f', '2/link/now', { content: 'a directory' }),
  ]);
  expect([
    readdirSync(here.home).toSorted(),
    readdirSync(join(here.home, 'dir')),
    lstatSync(join(here.home, 'dir')).mode & 0o777,
  ]).toEqual([['dir', 'link', 'stays'], [], 0o500]);
});

test.each([
  ['above', [record('f', '2/../canary', { content: 'x' })]],
  ['at a place that was never sent', [record('f', '1/a', { content: 'x' })]],
  ['without a place', [record('f', '/canary', { content: 'x' })]],
  ['through a link', [record('l', '2/out', { content: '..' }), record('f', '2/out/canary', { content: 'x' })]],
  ['in place of the directory itself', [record('f', '2', { content: 'x' })]],
  ['as a device', [record('c', '2/device')]],
  ['with an empty name', [record('f', '2//canary', { content: 'x' })]],
  ['with more bytes than allowed', [record('f', '2/large', { content: 'x'.repeat(1001) })]],
  ['with fewer bytes than announced', [record('f', '2/short', { content: 'x', size: 900 })]],
])('nothing is written %s', async (_where, records) => {
  using here = place();
  await expect(unpack(here.home, records)).rejects.toMatchObject({
    code: 'capture.refused',
  });
  expect(readFileSync(join(here.root, 'canary'), 'utf8')).toBe('the user’s\n');
  expect(readdirSync(here.root).toSorted()).toEqual(['canary', 'home']);
});

test('a very deep directory does not keep an agent’s work from coming back', async () => {
  using here = place();
  const names = Array<string>(1000).fill('d');
  const directories = names.map((_, at) => record('d', `2/${names.slice(0, at + 1).join('/')}`, { mode: 0o555 }));
  await unpack(here.home, [
    ...directories,
    record('f', `2/${names.join('/')}/deep`, { content: 'deep' }),
    record('f', '2/work', { content: 'work' }),
  ]);
  expect([
    readFileSync(join(here.home, 'work'), 'utf8'),
    readFileSync(join(here.home, ...names, 'deep'), 'utf8'),
    lstatSync(join(here.home, ...names)).mode & 0o777,
    lstatSync(join(here.home, 'd')).mode & 0o777,
  ]).toEqual(['work', 'deep', 0o555, 0o555]);
  // A removed directory is deleted whole, however deep it is.
  await unpack(here.home, [record('x', '2/d')]);
  expect(readdirSync(here.home)).toEqual(['work']);
});

test('files that come back lose their set-user-ID and set-group-ID bits', async () => {
  using here = place();
  await unpack(here.home, [record('f', '2/program', { mode: 0o6755, content: 'x' })]);
  expect(lstatSync(join(here.home, 'program')).mode & 0o7777).toBe(0o755);
});
