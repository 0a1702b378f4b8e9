// The upper of a real overlay, mounted in a user namespace, against a comparison of the whole trees; and uppers that no
// honest overlay would hold. As root, the overlay parts run a second time as an ordinary user.
import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDirectory } from '../src/lib/descend.ts';
import { AgsError } from '../src/protocol/errors.ts';
import { opaqueProbe, parseOpaque } from '../src/review/opaque.ts';
import { listUpper, UPPER_LIMITS, upperDirectories, type UpperListing } from '../src/review/upper.ts';

const root = process.geteuid?.() === 0;
const users = root ? [0, 1001] : [process.geteuid?.() ?? -1];
let scratch = '';

beforeAll(() => {
  scratch = fs.realpathSync(fs.mkdtempSync('/tmp/ags-upper-'));
  fs.chmodSync(scratch, 0o755);
});
afterAll(() => {
  // The kernel leaves work directories with mode 000.
  execFileSync('chmod', ['-R', 'u+rwx', scratch]);
  fs.rmSync(scratch, { recursive: true });
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
  const [file = '', ...args] = [...become, 'unshare', '-Urm', 'sh', '-ec', `${mounts}\nexec "$0" -e "$1"`, process.execPath, program];
  const done = spawnSync(file, args, { input: JSON.stringify(input), maxBuffer: 1 << 28, encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`namespace: ${done.stderr} ${done.error ?? ''}`);
  return done.stdout;
}

function mountOverlay(path: string, hidden: readonly string[] = []): string {
  const hide = hidden.map((name) => `mkdir -p "$(dirname ${path}/hide/${name})"; mknod ${path}/hide/${name} c 0 0`).join('\n');
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
  return listUpper({ upper: join(path, 'upper'), lower: join(path, 'lower'), hidden: () => false, isOpaque: () => false, limits });
}

// In plain JavaScript, because the same function runs here and inside the namespace.
const SNAPSHOT = `function snapshot(fs, root) {
  const leaves = {}, directories = [];
  const visit = (at) => {
    for (const name of fs.readdirSync(root + '/' + at)) {
      const path = at ? at + '/' + name : name, full = root + '/' + path, stats = fs.lstatSync(full);
      if (stats.isDirectory()) { directories.push(path); visit(path); }
      else if (stats.isSymbolicLink()) leaves[path] = 'link ' + fs.readlinkSync(full);
      else leaves[path] = (stats.mode & 0o777).toString(8) + ' ' + fs.readFileSync(full, 'latin1');
    }
  };
  visit('');
  return { leaves, directories };
}`;
interface Snapshot {
  leaves: Record<string, string>;
  directories: string[];
}
const snapshot = new Function('fs', 'root', `${SNAPSHOT}; return snapshot(fs, root)`) as (f: typeof fs, path: string) => Snapshot;

const RANDOM = `function random(seed) {
  return (below) => { // mulberry32
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}
const NAMES = ['a', 'b', 'c', '.wh.a', '.wh..wh..opq', 'd e', 'é\\\\t', '-T', 'n\\nl'];
function somePath(pick) {
  const names = [];
  for (let depth = 1 + pick(3); depth > 0; depth--) names.push(NAMES[pick(NAMES.length)]);
  return names.join('/');
}`;
const random = new Function('seed', `${RANDOM}; return random(seed)`) as (seed: number) => (below: number) => number;
const somePath = new Function('pick', `${RANDOM}; return somePath(pick)`) as (pick: (below: number) => number) => string;

// Operations fail freely (a missing path, EXDEV for a directory of the lower): what counts is what is left.
const HISTORY = `const fs = require('node:fs');
${SNAPSHOT}
${RANDOM}
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
      // The name is taken, or its parent is a file.
    }
  }
}

function without(tree: Snapshot, hidden: readonly string[]): Snapshot {
  const visible = (path: string): boolean => !hidden.some((name) => path === name || path.startsWith(`${name}/`));
  const leaves = Object.fromEntries(Object.entries(tree.leaves).filter(([path]) => visible(path)));
  return { leaves, directories: tree.directories.filter(visible) };
}

describe.each(users)('as user %i', (user) => {
  test('after any history the listing is what a comparison of the whole trees finds', { timeout: 120_000 }, () => {
    const seed = Number(process.env['AGS_FUZZ_SEED'] ?? 20_251);
    console.log(`overlay histories as user ${user}: AGS_FUZZ_SEED=${seed}`);
    const histories = Array.from({ length: 150 }, (_, index) => {
      const pick = random(seed + index * 7919);
      const path = place('fuzz', user);
      growLower(join(path, 'lower'), pick);
      const before = snapshot(fs, join(path, 'lower'));
      const every = [...Object.keys(before.leaves), ...before.directories];
      // Names that a shell would split are left to the lower itself; a hidden path stands for a secret.
      const hidden = every.filter((name) => /^[a-z/]+$/.test(name)).filter(() => index % 2 === 1 && pick(4) === 0);
      const outermost = hidden.filter((name) => !hidden.some((other) => name.startsWith(`${other}/`)));
      return { path, seed: seed + index, steps: 8 + pick(40), hidden: outermost, before: without(before, outermost) };
    });
    own(user, ...histories.map(({ path }) => path));
    const mounts = histories.map(({ path, hidden }) => mountOverlay(path, hidden)).join('\n');
    const jobs = histories.map(({ path, seed: from, steps }) => ({ merged: join(path, 'merged'), seed: from, steps }));
    const answers = JSON.parse(inNamespace(user, mounts, HISTORY, jobs)) as { done: number; after: Snapshot }[];

    let compared = 0;
    const mismatches = histories.flatMap(({ path, hidden, before }, index) => {
      const after = answers[index]?.after ?? { leaves: {}, directories: [] };
      const paths = new Set([...Object.keys(before.leaves), ...Object.keys(after.leaves)]);
      const expected = [...paths].filter((name) => before.leaves[name] !== after.leaves[name]).sort();
      const listing = listAll(path, hidden);
      const inUpper = snapshotOf(path, listing);
      const found = Object.keys(inUpper).filter((name) => inUpper[name] !== before.leaves[name]).sort();
      compared += expected.length;
      const wrong = {
        index,
        missed: expected.filter((name) => inUpper[name] !== (after.leaves[name] ?? 'deleted')),
        invented: found.filter((name) => !expected.includes(name)),
        directories: difference(listing.removed, before.directories.filter((name) => !after.directories.includes(name))),
        refused: listing.refused,
      };
      const clean = [wrong.missed, wrong.invented, wrong.directories, wrong.refused].every((list) => list.length === 0);
      return clean ? [] : [wrong];
    });
    console.log(`${histories.length} histories, ${answers.reduce((sum, { done }) => sum + done, 0)} operations, ${compared} changes`);
    expect(mismatches).toEqual([]);
    expect(compared).toBeGreaterThan(1000);
  });

  test('only a whiteout deletes, never a file that is named like one (A110), and a replaced directory deletes what it had (A111)', () => {
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
  });

  test('a program inside cannot forge the mark that hides a directory', () => {
    const path = place('forge', user);
    fs.mkdirSync(join(path, 'lower/d'));
    fs.writeFileSync(join(path, 'lower/d/f'), '');
    own(user, path);
    const program = `const { spawnSync } = require('node:child_process');
      process.chdir(${JSON.stringify(join(path, 'merged'))});
      const py = 'import os\\nfor k in ("opaque", "redirect", "metacopy"):\\n  try: os.setxattr("d", "user.overlay." + k, b"y")\\n  except OSError: pass';
      process.stdout.write(String(spawnSync('python3', ['-c', py]).status));`;
    expect(inNamespace(user, mountOverlay(path), program, null)).toBe('0');
    expect(listAll(path).entries).toEqual([]);
  });
});

function snapshotOf(path: string, listing: UpperListing): Record<string, string> {
  const read = (name: string, type: string): string => {
    const file = join(path, 'upper', name);
    if (type === 'symlink') return `link ${fs.readlinkSync(file)}`;
    return `${(fs.lstatSync(file).mode & 0o777).toString(8)} ${fs.readFileSync(file, 'latin1')}`;
  };
  return Object.fromEntries(listing.entries.map(({ path: name, kind, type }) => [name, kind === 'deleted' ? 'deleted' : read(name, type)]));
}

function difference(one: readonly string[], other: readonly string[]): string[] {
  return [...one.filter((name) => !other.includes(name)), ...other.filter((name) => !one.includes(name))];
}
