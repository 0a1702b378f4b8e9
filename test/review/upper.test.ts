// test/review/upper.test.ts: compares the listing of a real overlay's upper with both whole trees, and lists hostile uppers. As root, the
// overlay parts run a second time as an ordinary user.
// uses: sandbox
import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDirectory } from '../../src/lib/descend.ts';
import { AgsError } from '../../src/protocol/errors.ts';
import { opaqueProbe, parseOpaque } from '../../src/review/opaque.ts';
import {
  listUpper,
  UPPER_LIMITS,
  upperDirectories,
  type UpperEntry,
  type UpperListing,
} from '../../src/review/upper.ts';
import { HAS_SANDBOX } from '../harness.ts';

const root = process.geteuid?.() === 0;
const users = root ? [0, 1001] : [process.geteuid?.() ?? -1];
let scratch = '';

beforeAll(() => {
  scratch = fs.realpathSync(fs.mkdtempSync('/var/tmp/ags-upper-'));
  fs.chmodSync(scratch, 0o755);
});
afterAll(() => {
  // The kernel leaves work directories with mode 000.
  execFileSync('chmod', ['-R', 'u+rwx', scratch]);
  // Some paths are too long for Node's rm.
  execFileSync('rm', ['-rf', scratch]);
});

function place(name: string, user = users[0]): string {
  const path = fs.mkdtempSync(join(scratch, `${name}-`));
  for (const part of ['.', 'lower', 'hide', 'upper', 'work', 'merged']) {
    fs.mkdirSync(join(path, part), { recursive: true });
    if (root) fs.chownSync(join(path, part), user ?? -1, user ?? -1);
  }
  return path;
}

function own(user: number | undefined, ...paths: string[]): void {
  if (root) execFileSync('chown', ['-hR', `${user}:${user}`, ...paths]);
}

/** Runs a node program (plain JavaScript) in a user namespace, after the shell commands `mounts`. */
function inNamespace(user: number | undefined, mounts: string, program: string, input: unknown): string {
  const become = root && user !== 0 ? ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups'] : [];
  const command = [
    ...become,
    'unshare',
    '-Urm',
    'sh',
    '-ec',
    `${mounts}\nexec "$0" -e "$1"`,
    process.execPath,
    program,
  ];
  const done = spawnSync('env', ['--', ...command], {
    input: JSON.stringify(input),
    maxBuffer: 1 << 28,
    encoding: 'utf8',
  });
  if (done.status !== 0) throw new Error(`namespace: ${done.stderr} ${done.error ?? ''}`);
  return done.stdout;
}

function mountOverlay(path: string, hidden: readonly string[] = []): string {
  const hide = hidden
    .map((name) => `mkdir -p "$(dirname ${path}/hide/${name})"; mknod ${path}/hide/${name} c 0 0`)
    .join('\n');
  const options = `userxattr,lowerdir=${path}/hide:${path}/lower,upperdir=${path}/upper,workdir=${path}/work`;
  return `${hide}\nmount -t overlay overlay -o ${options} ${path}/merged`;
}

function listAll(path: string, hidden: readonly string[] = []): UpperListing {
  const upper = join(path, 'upper');
  const asked = upperDirectories(upper, UPPER_LIMITS);
  let opaque = new Set<string>();
  if (asked.length > 0) {
    const { argv, input } = opaqueProbe(asked);
    const [file = '', ...args] = argv;
    opaque = parseOpaque(execFileSync(file, args, { cwd: upper, input, maxBuffer: 1 << 28 }), asked);
  }
  const listing = listUpper({
    upper,
    lower: join(path, 'lower'),
    hidden: (name) => hidden.includes(name),
    isOpaque: (name) => opaque.has(name),
    limits: UPPER_LIMITS,
  });
  expect([...listing.directories].sort()).toEqual(asked.sort());
  return listing;
}

function listPlain(path: string, limits = UPPER_LIMITS): UpperListing {
  return listUpper({
    upper: join(path, 'upper'),
    lower: join(path, 'lower'),
    hidden: () => false,
    isOpaque: () => false,
    limits,
  });
}

interface Snapshot {
  leaves: Record<string, string>;
  directories: string[];
}

// The next three functions also run as text inside the namespace, so they use nothing but their arguments.
function snapshot(from: typeof fs, directory: string): Snapshot {
  const leaves: Record<string, string> = {};
  const directories: string[] = [];
  const visit = (at: string): void => {
    for (const name of from.readdirSync(`${directory}/${at}`)) {
      const path = at ? `${at}/${name}` : name;
      const full = `${directory}/${path}`;
      const stats = from.lstatSync(full);
      if (stats.isDirectory()) {
        directories.push(path);
        visit(path);
      } else if (stats.isSymbolicLink()) leaves[path] = `link ${from.readlinkSync(full)}`;
      else leaves[path] = `${(stats.mode & 0o777).toString(8)} ${from.readFileSync(full, 'latin1')}`;
    }
  };
  visit('');
  return { leaves, directories };
}

/** mulberry32 */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

function somePath(pick: (below: number) => number): string {
  const known = ['a', 'b', 'c', '.wh.a', '.wh..wh..opq', 'd e', 'é\\t', '-T', 'n\nl'];
  return Array.from({ length: 1 + pick(3) }, () => known[pick(known.length)]).join('/');
}

// Operations may fail (a missing path, EXDEV for a directory of the lower); only the final tree counts.
const HISTORY = `const fs = require('node:fs');
${[snapshot, random, somePath].map(String).join('\n')}
const { dirname } = require('node:path');
const operations = [
  (m, p) => fs.writeFileSync(m(p()), 'new'),
  (m, p) => { const f = m(p()); fs.mkdirSync(dirname(f), { recursive: true }); fs.writeFileSync(f, 'deep'); },
  (m, p) => fs.appendFileSync(m(p()), '+'),
  (m, p) => { const f = m(p()); fs.writeFileSync(f, fs.readFileSync(f)); },
  (m, p) => fs.unlinkSync(m(p())),
  (m, p) => fs.renameSync(m(p()), m(p())),
  (m, p) => { const f = m(p()), t = m(p()); fs.cpSync(f, t, { recursive: true }); fs.rmSync(f, { recursive: true }); },
  (m, p) => fs.mkdirSync(m(p()), { recursive: true }),
  (m, p) => fs.rmSync(m(p()), { recursive: true }),
  (m, p) => { const d = m(p()); fs.rmSync(d, { recursive: true }); fs.mkdirSync(d); },
  (m, p) => { const d = m(p()); fs.rmSync(d, { recursive: true }); fs.mkdirSync(d + '/b', { recursive: true }); fs.writeFileSync(d + '/b/a', 'in opaque'); },
  (m, p) => { const d = m(p()); fs.rmSync(d, { recursive: true }); fs.writeFileSync(d, 'was something else'); },
  (m, p) => { const d = m(p()); fs.rmSync(d, { recursive: true }); fs.writeFileSync(d, 'x'); fs.unlinkSync(d); fs.mkdirSync(d); fs.writeFileSync(d + '/c', 'back'); },
  (m, p) => fs.symlinkSync('../' + p(), m(p())),
  (m, p) => { const f = m(p()); fs.rmSync(f, { recursive: true }); fs.symlinkSync('a', f); },
  (m, p) => { const f = m(p()); fs.chmodSync(f, fs.statSync(f).isDirectory() ? 0o700 : 0o600); },
  (m, p) => fs.chmodSync(m(p()), 0o755),
  (m, p) => fs.utimesSync(m(p()), 1, 1),
  (m, p) => fs.linkSync(m(p()), m(p())),
];
const answers = JSON.parse(fs.readFileSync(0, 'utf8')).map(({ merged, seed, steps }) => {
  const pick = random(seed);
  let done = 0;
  for (let step = 0; step < steps; step++) {
    try {
      const { leaves, directories } = snapshot(fs, merged);
      const existing = [...Object.keys(leaves), ...directories].sort();
      const path = () => (existing.length > 0 && pick(3) > 0 ? existing[pick(existing.length)] : somePath(pick));
      operations[pick(operations.length)]((path) => merged + '/' + path, path);
      done++;
    } catch (error) { if (!error.code) throw error; }
  }
  return { done, after: snapshot(fs, merged) };
});
process.stdout.write(JSON.stringify(answers));`;

function growLower(lower: string, pick: (below: number) => number): void {
  for (let count = 6 + pick(30); count > 0; count--) {
    const file = join(lower, somePath(pick));
    try {
      fs.mkdirSync(join(file, '..'), { recursive: true });
      if (pick(6) === 0) fs.symlinkSync(somePath(pick), file);
      else fs.writeFileSync(file, `lower ${count}`, { mode: pick(4) === 0 ? 0o755 : 0o644 });
    } catch {
      // The name exists, or its parent is a file.
    }
  }
}

function without(tree: Snapshot, hidden: readonly string[]): Snapshot {
  const visible = (path: string): boolean => !hidden.some((name) => path === name || path.startsWith(`${name}/`));
  const leaves = Object.fromEntries(Object.entries(tree.leaves).filter(([path]) => visible(path)));
  return { leaves, directories: tree.directories.filter(visible) };
}

describe.each(users)('as user %i', (user) => {
  test.runIf(HAS_SANDBOX)(
    'after any history the listing equals a comparison of the whole trees',
    { timeout: 120_000 },
    () => {
      const seed = Number(process.env['AGS_FUZZ_SEED'] ?? 20_251);
      console.log(`overlay histories as user ${user}: AGS_FUZZ_SEED=${seed}`);
      const histories = Array.from({ length: 150 }, (_, index) => {
        const pick = random(seed + index * 7919);
        const path = place('fuzz', user);
        growLower(join(path, 'lower'), pick);
        const before = snapshot(fs, join(path, 'lower'));
        const every = [...Object.keys(before.leaves), ...before.directories];
        // The shell commands use only plain names; a hidden path stands for a secret.
        const hidden = every.filter((name) => /^[a-z/]+$/.test(name)).filter(() => index % 2 === 1 && pick(4) === 0);
        const outermost = hidden.filter((name) => !hidden.some((other) => name.startsWith(`${other}/`)));
        return { path, seed: seed + index, steps: 8 + pick(40), hidden: outermost, before: without(before, outermost) };
      });
      own(user, ...histories.map(({ path }) => path));
      const mounts = histories.map(({ path, hidden }) => mountOverlay(path, hidden)).join('\n');
      const jobs = histories.map(({ path, seed: from, steps }) => ({
        merged: join(path, 'merged'),
        seed: from,
        steps,
      }));
      const answers = JSON.parse(inNamespace(user, mounts, HISTORY, jobs)) as { done: number; after: Snapshot }[];

      let compared = 0;
      const mismatches = histories.flatMap(({ path, hidden, before }, index) => {
        const after = answers[index]?.after ?? { leaves: {}, directories: [] };
        const paths = new Set([...Object.keys(before.leaves), ...Object.keys(after.leaves)]);
        const expected = [...paths].filter((name) => before.leaves[name] !== after.leaves[name]).sort();
        const listing = listAll(path, hidden);
        const inUpper = snapshotOf(path, listing);
        const found = Object.keys(inUpper)
          .filter((name) => inUpper[name] !== before.leaves[name])
          .sort();
        compared += expected.length;
        const wrong = {
          index,
          missed: expected.filter((name) => inUpper[name] !== (after.leaves[name] ?? 'deleted')),
          invented: found.filter((name) => !expected.includes(name)),
          directories: difference(
            listing.removed,
            before.directories.filter((name) => !after.directories.includes(name)),
          ),
          refused: listing.refused,
        };
        const clean = [wrong.missed, wrong.invented, wrong.directories, wrong.refused].every(
          (list) => list.length === 0,
        );
        return clean ? [] : [wrong];
      });
      console.log(
        `${histories.length} histories, ${answers.reduce((sum, { done }) => sum + done, 0)} operations, ${compared} changes`,
      );
      expect(mismatches).toEqual([]);
      expect(compared).toBeGreaterThan(1000);
    },
  );

  test.runIf(HAS_SANDBOX)(
    "only a whiteout deletes, never a file with a whiteout's name (A110), and a replaced directory deletes its old files (A111)",
    () => {
      const path = place('marks', user);
      for (const name of ['gone/x', 'gone/deep/y', 'again/old', 'again/sub/old', 'kept']) {
        fs.mkdirSync(join(path, 'lower', name, '..'), { recursive: true });
        fs.writeFileSync(join(path, 'lower', name), 'abc');
      }
      own(user, path);
      inNamespace(
        user,
        mountOverlay(path),
        `const fs = require('node:fs');
       process.chdir(${JSON.stringify(join(path, 'merged'))});
       fs.rmSync('gone', { recursive: true });
       fs.rmSync('again', { recursive: true });
       fs.mkdirSync('again/sub', { recursive: true });
       fs.writeFileSync('again/sub/new', '');
       fs.writeFileSync('.wh.kept', '');
       fs.writeFileSync('again/.wh..wh..opq', '');`,
        null,
      );
      const deleted = { kind: 'deleted', type: 'file', mode: 0o644, bytes: 3 };
      const written = { kind: 'written', type: 'file', mode: 0o644, bytes: 0 };
      expect(listAll(path)).toEqual({
        entries: [
          { ...written, path: '.wh.kept' },
          { ...written, path: 'again/.wh..wh..opq' },
          { ...written, path: 'again/sub/new' },
          { ...deleted, path: 'again/sub/old' },
          { ...deleted, path: 'again/old' },
          { ...deleted, path: 'gone/deep/y' },
          { ...deleted, path: 'gone/x' },
        ],
        directories: ['again', 'again/sub'],
        removed: ['gone/deep', 'gone'],
        refused: [],
      });
    },
  );

  test.runIf(HAS_SANDBOX)('a program inside cannot forge the mark of an opaque directory', () => {
    const path = place('forge', user);
    fs.mkdirSync(join(path, 'lower/d'));
    fs.writeFileSync(join(path, 'lower/d/f'), '');
    own(user, path);
    // Unpacking an archive sets attributes without further tools.
    const archive = ['opaque', 'redirect', 'metacopy'].map((name) =>
      directoryRecord('d/', { [`SCHILY.xattr.user.overlay.${name}`]: 'y' }),
    );
    const program = `const { spawnSync } = require('node:child_process');
      const input = Buffer.from(JSON.parse(require('node:fs').readFileSync(0, 'utf8')), 'base64');
      const done = spawnSync('tar', ['--xattrs', '--xattrs-include=user.*', '-xf', '-'], { input, cwd: ${JSON.stringify(join(path, 'merged'))} });
      process.stdout.write(String(done.status));`;
    expect(inNamespace(user, mountOverlay(path), program, tar(...archive).toString('base64'))).toMatch(/^[012]$/);
    expect(listAll(path).entries).toEqual([]);
  });
});

function snapshotOf(path: string, listing: UpperListing): Record<string, string> {
  const read = (name: string, type: string): string => {
    const file = join(path, 'upper', name);
    if (type === 'symlink') return `link ${fs.readlinkSync(file)}`;
    return `${(fs.lstatSync(file).mode & 0o777).toString(8)} ${fs.readFileSync(file, 'latin1')}`;
  };
  return Object.fromEntries(
    listing.entries.map(({ path: name, kind, type }) => [name, kind === 'deleted' ? 'deleted' : read(name, type)]),
  );
}

function difference(one: readonly string[], other: readonly string[]): string[] {
  return [...one.filter((name) => !other.includes(name)), ...other.filter((name) => !one.includes(name))];
}

describe('in the upper', () => {
  test('a link is listed as a link, without its target (A3)', () => {
    const path = place('link');
    fs.mkdirSync(join(path, 'lower/d'));
    fs.writeFileSync(join(path, 'lower/d/f'), 'abc');
    fs.symlinkSync('/etc', join(path, 'upper/d'));
    expect(listPlain(path)).toEqual({
      entries: [entry('d', { type: 'symlink', mode: 0o777, bytes: 4 }), entry('d/f', { kind: 'deleted', bytes: 3 })],
      directories: [],
      removed: ['d'],
      refused: [],
    });
  });

  test('a link in the lower is never followed, whatever replaces it in the upper (A106)', () => {
    const path = place('replaced');
    fs.mkdirSync(join(path, 'outside'));
    fs.writeFileSync(join(path, 'outside/f'), '');
    fs.symlinkSync('../outside', join(path, 'lower/lnk'));
    fs.mkdirSync(join(path, 'upper/lnk'));
    fs.writeFileSync(join(path, 'upper/lnk/f'), '');
    const listing = listUpper({
      upper: join(path, 'upper'),
      lower: join(path, 'lower'),
      hidden: () => false,
      isOpaque: () => true,
      limits: UPPER_LIMITS,
    });
    expect(listing.entries).toEqual([
      entry('lnk', { kind: 'deleted', type: 'symlink', mode: 0o777, bytes: 10 }),
      entry('lnk/f'),
    ]);
  });

  test('pipes, sockets and devices are refused, and so are the files that they replaced (A109)', async () => {
    const path = place('types');
    fs.mkdirSync(join(path, 'lower/pipe'));
    fs.writeFileSync(join(path, 'lower/pipe/f'), '');
    execFileSync('mkfifo', [join(path, 'upper/pipe')]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(path, 'upper/socket'), resolve));
    if (root) execFileSync('mknod', [join(path, 'upper/null'), 'c', '1', '3']);
    if (root) execFileSync('mknod', [join(path, 'upper/disk'), 'b', '0', '0']);
    const listing = listPlain(path);
    server.close();
    const devices = ['disk', 'null'].map((name) => ({ path: name, reason: 'a device: never taken' }));
    expect(listing).toEqual({
      entries: [],
      directories: [],
      removed: [],
      refused: [
        ...(root ? devices : []),
        { path: 'pipe', reason: 'a named pipe: never taken' },
        { path: 'socket', reason: 'a socket: never taken' },
      ],
    });
  });

  test('a set-user-id file is offered without its bit, with a note (A107)', () => {
    const path = place('suid');
    fs.mkdirSync(join(path, 'upper/shared'));
    fs.chmodSync(join(path, 'upper/shared'), 0o2755);
    for (const [name, mode] of [
      ['shared/u', 0o4755],
      ['shared/g', 0o2711],
      ['t', 0o1644],
    ] as const) {
      fs.writeFileSync(join(path, 'upper', name), '');
      fs.chmodSync(join(path, 'upper', name), mode);
    }
    const reason = 'its set-user-id or set-group-id bit is never taken; the file is offered without it';
    expect(listPlain(path)).toMatchObject({
      entries: [entry('shared/g', { mode: 0o711 }), entry('shared/u', { mode: 0o755 }), entry('t')],
      refused: [
        { path: 'shared/g', reason },
        { path: 'shared/u', reason },
      ],
    });
  });

  test('a file unreadable for its owner is refused, also for root', () => {
    const path = place('modes');
    fs.writeFileSync(join(path, 'upper/file'), '', { mode: 0o200 });
    fs.mkdirSync(join(path, 'upper/closed'));
    fs.writeFileSync(join(path, 'upper/closed/f'), '');
    fs.chmodSync(join(path, 'upper/closed'), 0o300);
    expect(refusedIn(path)).toEqual({
      closed: 'a directory that its owner may not read: nothing in it is taken',
      file: 'a file that its owner may not read: never taken',
    });
    expect(upperDirectories(join(path, 'upper'), UPPER_LIMITS)).toEqual([]);
  });

  test('.git is refused once per tree, whether written, deleted or hidden', () => {
    const path = place('git');
    for (const name of [
      'upper/.git/hooks/x',
      'upper/sub/.GIT/config',
      'upper/sub/.git',
      'upper/.gitignore',
      'lower/gone/.git/HEAD',
      'lower/gone/f',
    ]) {
      fs.mkdirSync(join(path, name, '..'), { recursive: true });
      fs.writeFileSync(join(path, name), '');
    }
    execFileSync('mknod', [join(path, 'upper/gone'), 'c', '0', '0']);
    const reason = 'inside .git: never taken';
    expect(listPlain(path)).toEqual({
      entries: [entry('.gitignore'), entry('gone/f', { kind: 'deleted' })],
      directories: ['sub'],
      removed: ['gone'],
      refused: ['.git', 'gone/.git', 'sub/.GIT', 'sub/.git'].map((name) => ({ path: name, reason })),
    });
    expect(upperDirectories(join(path, 'upper'), UPPER_LIMITS)).toEqual(['sub']);
  });

  test('names are data, and one that is not UTF-8 is refused (A103, A113)', () => {
    const path = place('names');
    const names = ['\x1b]0;x\x07', '%s%n', 'new\nline', '-rf', 'a\\nb', '\u202etxt', 'x'.repeat(255)];
    for (const name of names) fs.writeFileSync(join(path, 'upper', name), '');
    fs.mkdirSync(Buffer.concat([Buffer.from(`${path}/upper/`), Buffer.from([0x61, 0xff, 0xc0])]));
    const listing = listPlain(path);
    expect(listing.entries.map((e) => e.path).sort()).toEqual(names.sort());
    expect(listing.refused).toEqual([{ path: 'a\\xff\\xc0', reason: 'a name that is not UTF-8: never taken' }]);
  });

  test('a sparse file of a terabyte is reported by size without being read (A114)', () => {
    const path = place('sparse');
    execFileSync('truncate', ['-s', '1T', join(path, 'upper/huge')]);
    expect(listPlain(path).entries).toEqual([entry('huge', { bytes: 2 ** 40 })]);
  });

  test('too many files, deep directories and long paths end the listing (A114)', () => {
    const many = place('many');
    for (let count = 0; count < 60; count++) fs.writeFileSync(join(many, 'upper', `f${count}`), '');
    expect(listPlain(many, { entries: 60, depth: 5 }).entries).toHaveLength(60);
    const limit = 'there are more than 59 files and directories';
    expect(refusalOf(() => listPlain(many, { entries: 59, depth: 5 }))).toEqual(limit);
    expect(refusalOf(() => upperDirectories(join(many, 'upper'), { entries: 59, depth: 5 }))).toEqual(limit);

    const gone = place('gone');
    fs.mkdirSync(join(gone, 'lower/d'));
    for (let count = 0; count < 60; count++) fs.writeFileSync(join(gone, 'lower/d', `f${count}`), '');
    execFileSync('mknod', [join(gone, 'upper/d'), 'c', '0', '0']);
    expect(refusalOf(() => listPlain(gone, { entries: 59, depth: 5 }))).toEqual(limit);

    const deep = place('deep');
    nest(join(deep, 'upper'), 260, 'x'.repeat(250));
    expect(refusalOf(() => listPlain(deep))).toBe('a path is longer than 4095 bytes');
    expect(refusalOf(() => upperDirectories(join(deep, 'upper'), UPPER_LIMITS))).toBe(
      'a path is longer than 4095 bytes',
    );
    const nested = place('nested');
    nest(join(nested, 'upper'), 200, 'd');
    expect(refusalOf(() => listPlain(nested))).toBe('directories are nested more than 200 deep');
    expect(listPlain(nested, { entries: 300, depth: 201 }).directories).toHaveLength(200);
  });

  test('a root that is a link, or is behind a link, is refused', () => {
    const path = place('roots');
    fs.symlinkSync('upper', join(path, 'alias'));
    fs.symlinkSync('.', join(path, 'here'));
    const list = (upper: string, lower: string): unknown =>
      listUpper({
        upper: join(path, upper),
        lower: join(path, lower),
        hidden: () => false,
        isOpaque: () => false,
        limits: UPPER_LIMITS,
      });
    for (const [upper, lower] of [
      ['alias', 'lower'],
      ['upper', 'alias'],
      ['here/upper', 'lower'],
      ['upper', 'none'],
    ] as const) {
      expect(() => list(upper, lower)).toThrow(AgsError);
    }
    expect(list('upper', 'lower')).toEqual({ entries: [], directories: [], removed: [], refused: [] });
  });
});

describe('the output of tar', () => {
  const OPAQUE = { 'SCHILY.xattr.user.overlay.opaque': 'y' };

  test('names opaque directories, with their true names', () => {
    const odd = {
      'SCHILY.xattr.user.overlay.impure': 'y',
      'SCHILY.xattr.user.overlay.overlay.redirect': 'x=\ny',
      mtime: '1.5',
    };
    const archive = tar(
      directoryRecord('./a/', OPAQUE),
      directoryRecord('./a/b/', odd),
      directoryRecord('./short/', { ...OPAQUE, path: './long=\n10 x' }),
    );
    expect(parseOpaque(archive, ['a', 'a/b', 'long=\n10 x'])).toEqual(new Set(['a', 'long=\n10 x']));
  });

  test.each([
    ['redirect', directoryRecord('./a/', { 'SCHILY.xattr.user.overlay.redirect': '/etc' })],
    ['metacopy', directoryRecord('./a/', { 'SCHILY.xattr.user.overlay.metacopy': '' })],
    ['another opaque mark', directoryRecord('./a/', { 'SCHILY.xattr.user.overlay.opaque': 'x' })],
    ['an unknown attribute', directoryRecord('./a/', { 'SCHILY.xattr.user.overlay.future': 'y' })],
    ['an unknown record', directoryRecord('./a/', { hdrcharset: 'BINARY' })],
    ['a path that leaves the upper', directoryRecord('./../a/', OPAQUE)],
    ['an absolute path', directoryRecord('/a/', OPAQUE)],
    ['a file', header('./a', '0', 0)],
    ['a directory with content', Buffer.concat([header('./a/', '5', 512), Buffer.alloc(512, 1)])],
    ['a global header', header('./a', 'g', 0)],
    ['a directory twice', Buffer.concat([directoryRecord('./a/', OPAQUE), directoryRecord('./a/', {})])],
    ['a wrong checksum', spoil(directoryRecord('./a/', OPAQUE), 1024 + 10)],
    ['an unrequested directory', directoryRecord('./b/', OPAQUE)],
    ['an endless header', header('./a', 'x', 0o77777777777)],
    [
      'a record longer than its header',
      Buffer.concat([header('./a', 'x', 20), Buffer.from('99 path=./a\n'.padEnd(512, '\0'))]),
    ],
    [
      'a record without a length',
      Buffer.concat([header('./a', 'x', 12), Buffer.from('path=./a\nxyz'.padEnd(512, '\0'))]),
    ],
    [
      'a record of length zero',
      Buffer.concat([header('./a', 'x', 12), Buffer.from('0 path=./a\nx'.padEnd(512, '\0'))]),
    ],
  ])('is refused with %s', (_, strange) => {
    expect(() => parseOpaque(tar(strange), ['a'])).toThrow(AgsError);
  });

  test('is refused when truncated anywhere', () => {
    const whole = tar(directoryRecord('./a/', OPAQUE), directoryRecord('./b/', {}));
    for (let bytes = 0; bytes < whole.length - 1024; bytes += 64)
      expect(() => parseOpaque(whole.subarray(0, bytes))).toThrow(AgsError);
    expect(parseOpaque(whole)).toEqual(new Set(['a']));
  });
});

function entry(path: string, more: Partial<UpperEntry> = {}): UpperEntry {
  return { path, kind: 'written', type: 'file', mode: 0o644, bytes: 0, ...more };
}

function refusedIn(path: string): Record<string, string> {
  return Object.fromEntries(listPlain(path).refused.map((refusal) => [refusal.path, refusal.reason]));
}

function refusalOf(list: () => unknown): unknown {
  try {
    list();
    return 'nothing was refused';
  } catch (error) {
    return error instanceof AgsError && error.code === 'capture.refused' && error.hint ? error.details['limit'] : error;
  }
}

function nest(at: string, depth: number, name: string): void {
  let directory = openDirectory(at);
  for (let level = 0; level < depth; level++) {
    const child = directory.mkdirChild(name, 0o755);
    directory[Symbol.dispose]();
    directory = child;
  }
  directory[Symbol.dispose]();
}

function tar(...records: Buffer[]): Buffer {
  return Buffer.concat([...records, Buffer.alloc(1024)]);
}

function directoryRecord(name: string, extended: Record<string, string>): Buffer {
  const records = Buffer.concat(
    Object.entries(extended).map(([key, value]) => record(Buffer.from(`${key}=${value}\n`))),
  );
  const padding = Buffer.alloc((512 - (records.length % 512)) % 512);
  return Buffer.concat([header('./PaxHeaders/x', 'x', records.length), records, padding, header(name, '5', 0)]);
}

function record(body: Buffer): Buffer {
  let length = body.length + 2;
  while (length !== body.length + 1 + String(length).length) length = body.length + 1 + String(length).length;
  return Buffer.concat([Buffer.from(`${length} `), body]);
}

function header(name: string, type: string, bytes: number): Buffer {
  const block = Buffer.alloc(512);
  block.write(name, 0);
  block.write('0000755\x000001751\x000001751\0', 100);
  block.write(`${bytes.toString(8).padStart(11, '0')}\x0000000000000\0        `, 124);
  block.write(type, 156);
  block.write('ustar\x0000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

function spoil(bytes: Buffer, at: number): Buffer {
  const spoiled = Buffer.from(bytes);
  spoiled[at] = (spoiled[at] ?? 0) ^ 1;
  return spoiled;
}
