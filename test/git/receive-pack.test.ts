// test/git/receive-pack.test.ts: a pack from a sandbox is stored completely and verified, or not at all. The packs are made by hand, as a
// compromised git might write them.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterAll, describe, expect, test } from 'vitest';
import { AgsError } from '../../src/protocol/errors.ts';
import { createStaging, listTree, receivePack } from '../../src/git/staging/staging.ts';
import { blob, commit, makePack, objectId, tree, type PackFlaws, type PackObject } from './hostile-pack.ts';

const scratch = realpathSync(mkdtempSync('/tmp/ags-pack-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('a pack from a sandbox', () => {
  const file = blob('x\n');
  const good = tree([['100644', 'f', file]]);
  const whole = (objects: readonly PackObject[], flaws?: PackFlaws): Buffer => makePack(objects, flaws);
  const named = (name: string, mode = '100644'): Buffer => {
    const bad = tree([[mode, name, mode === '40000' ? good : file]]);
    return whole([file, good, bad, commit(bad)]);
  };
  const sound = whole([file, good, commit(good)]);
  const staging = (): string => {
    const directory = mkdtempSync(join(scratch, 's-'));
    createStaging(directory, 'sha1');
    return directory;
  };
  const stored = (directory: string): string[] =>
    readdirSync(join(directory, 'objects/pack')).filter((name) => /\.(pack|idx)$/.test(name));

  test('is stored if it is valid', async () => {
    const directory = staging();
    await receivePack(directory, Readable.from([sound]), 2 ** 20, 20_000);
    expect(await listTree(directory, objectId(good))).toEqual([
      { path: 'f', mode: '100644', oid: objectId(file), bytes: 2 },
    ]);
  });

  const missing = tree([['100644', 'f', 'ab'.repeat(20)]]);
  const twice = tree([
    ['100644', 'f', file],
    ['100644', 'f', file],
  ]);
  const both = tree([
    ['100644', 'f', file],
    ['40000', 'f', good],
  ]);
  const unsorted = tree([
    ['100644', 'z', file],
    ['100644', 'a', file],
  ]);
  const modules = blob('[submodule "../../x"]\n\tpath = x\n\turl = -oProxyCommand=evil\n\tupdate = !evil\n');
  const withModules = tree([['100644', '.gitmodules', modules]]);
  const HOSTILE: Readonly<Record<string, Buffer>> = {
    ...Object.fromEntries(
      [
        '.git',
        '.GIT',
        '.git ',
        '.git.',
        'git~1',
        '.g\u200cit',
        '.git::$INDEX_ALLOCATION',
        '..',
        '.',
        '',
        'a/b',
        '../x',
        '/etc/x',
        'x\\.git',
      ].map((name) => [`a file called ${JSON.stringify(name)}`, named(name)]),
    ),
    ...Object.fromEntries(
      ['.git', '..'].map((name) => [`a directory called ${JSON.stringify(name)}`, named(name, '40000')]),
    ),
    'a link called .gitmodules': named('.gitmodules', '120000'),
    'a .gitmodules that runs a program': whole([modules, withModules, commit(withModules)]),
    'two entries with one name': whole([file, twice, commit(twice)]),
    'a file and a directory with one name': whole([file, good, both, commit(both)]),
    'entries out of order': whole([file, unsorted, commit(unsorted)]),
    'a mode with a leading zero': named('f', '0100644'),
    'a missing file': whole([missing, commit(missing)]),
    'a truncated tree': whole([file, { type: 'tree', data: good.data.subarray(0, -3) }]),
    'text in place of a tree': whole([{ type: 'tree', data: Buffer.from('nothing of the kind') }]),
    'a wrong checksum': whole([file, good, commit(good)], { trailer: Buffer.alloc(20, 7) }),
    'a truncated pack': sound.subarray(0, -30),
    'only a part of the header': sound.subarray(0, 10),
    'no data': Buffer.alloc(0),
    'data that is not a pack': Buffer.from(
      'not a pack, although a careless reader might accept these many bytes as one',
    ),
    'a count above the objects': whole([file, good, commit(good)], { count: 4 }),
    'a count below the objects': whole([file, good, commit(good)], { count: 2 }),
    'bytes after the last object': whole([file, good, commit(good)], { extra: Buffer.from('more') }),
    'a future version': whole([file, good, commit(good)], { version: 9 }),
    'an object larger than it claims': whole([{ ...file, claims: 1 }, good, commit(good)]),
    'an object smaller than it claims': whole([{ ...file, claims: 200 }, good, commit(good)]),
    'an object that claims a terabyte': whole([{ ...file, claims: 2 ** 40 }, good, commit(good)]),
    'a tree that claims a terabyte': whole([{ ...good, claims: 2 ** 40 }]),
    'an invalid commit': whole([{ type: 'commit', data: Buffer.from('tree 0000\n') }]),
  };

  test.each(Object.keys(HOSTILE))('with %s is refused completely', async (name) => {
    const directory = staging();
    const refusal: unknown = await receivePack(
      directory,
      Readable.from([HOSTILE[name] ?? Buffer.alloc(0)]),
      2 ** 20,
      20_000,
    ).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(AgsError);
    expect([(refusal as AgsError).code, stored(directory)]).toEqual(['capture.refused', []]);
  });

  test('is refused as soon as it exceeds its limit', async () => {
    const directory = staging();
    const noise = blob(randomBytes(20_000));
    const big = tree([['100644', 'f', noise]]);
    const pack = whole([noise, big, commit(big)]);
    expect(pack.length).toBeGreaterThan(4096);
    await expect(receivePack(directory, Readable.from([pack]), 4096, 20_000)).rejects.toThrow(
      /exceeds maximum allowed size/,
    );
    expect(stored(directory)).toEqual([]);
    await receivePack(directory, Readable.from([pack]), pack.length, 20_000);
  });

  test('is refused if it would exhaust memory when unpacked', async () => {
    const directory = staging();
    // Three gigabytes of zeros compress to three megabytes.
    const bomb = whole([{ type: 'tree', data: Buffer.alloc(64 * 2 ** 20), claims: 3 * 2 ** 30 }]);
    await expect(receivePack(directory, Readable.from([bomb]), 2 ** 30, 60_000)).rejects.toThrow(/[Oo]ut of memory/);
  });

  test('is given up at the deadline if it never ends', async () => {
    const directory = staging();
    const endless = new PassThrough();
    endless.write(sound.subarray(0, 20));
    await expect(receivePack(directory, endless, 2 ** 20, 300)).rejects.toThrow(AgsError);
    expect(stored(directory)).toEqual([]);
  });
});
