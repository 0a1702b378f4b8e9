// test/git/replacements.test.ts: files, directories and links that replace each other, with and without renames. For any accepted subset, each
// user file has its old or its new content, and refused paths are untouched.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hostState, type ApplyOp } from '../../src/review/apply.ts';
import { applyAll, recover, undoJournal, type PlannedChange } from '../../src/review/journal.ts';
import { ancestors, inOrder } from '../../src/review/order.ts';

/** Content by path; a link is "-> target". */
type Leaves = Readonly<Record<string, string>>;

interface Case {
  readonly before: Leaves;
  readonly after: Leaves;
  /** New names by old names. */
  readonly renames?: Readonly<Record<string, string>>;
}

const OTHER = { 'other/kept': 'kept' };

const CASES: Readonly<Record<string, Case>> = {
  'a file becomes a directory': { before: { x: 'x' }, after: { 'x/in': 'in', 'x/deep/er': 'deep' } },
  'a file becomes a link': { before: { x: 'x' }, after: { x: '-> other' } },
  'a directory becomes a file': { before: { 'x/a': 'a', 'x/b/c': 'c' }, after: { x: 'x' } },
  'a directory becomes a link': { before: { 'x/a': 'a', 'x/b/c': 'c' }, after: { x: '-> other' } },
  'a link becomes a file': { before: { x: '-> other' }, after: { x: 'x' } },
  'a link becomes a directory': { before: { x: '-> other' }, after: { 'x/kept': 'in', 'x/deep/er': 'deep' } },
  'a file is moved away and becomes a directory': {
    before: { x: 'x' },
    after: { 'y/moved': 'x', 'x/in': 'in' },
    renames: { x: 'y/moved' },
  },
  'a link is moved away and becomes a directory': {
    before: { x: '-> other' },
    after: { moved: '-> other', 'x/kept': 'in' },
    renames: { x: 'moved' },
  },
  'a directory is moved away and becomes a file': {
    before: { 'x/a': 'a', 'x/b/c': 'c' },
    after: { 'y/a': 'a', 'y/b/c': 'c', x: 'x' },
    renames: { 'x/a': 'y/a', 'x/b/c': 'y/b/c' },
  },
  'a directory is moved away and becomes a link': {
    before: { 'x/a': 'a', 'x/b/c': 'c' },
    after: { 'y/a': 'a', x: '-> y' },
    renames: { 'x/a': 'y/a' },
  },
  'a file is moved into a directory of its own name': {
    before: { x: 'x' },
    after: { 'x/y': 'x', 'x/new': 'new' },
    renames: { x: 'x/y' },
  },
  'a link is moved into a directory of its own name': {
    before: { x: '-> other' },
    after: { 'x/y': '-> other', 'x/kept': 'in' },
    renames: { x: 'x/y' },
  },
  'a file takes the name of its directory': {
    before: { 'x/a': 'a', 'x/b/c': 'c' },
    after: { x: 'c' },
    renames: { 'x/b/c': 'x' },
  },
  'a link takes the name of its directory': {
    before: { 'x/a': 'a', 'x/l': '-> ../other' },
    after: { x: '-> ../other' },
    renames: { 'x/l': 'x' },
  },
  'a file and a directory swap names': {
    before: { f: 'f', 'd/a': 'a' },
    after: { d: 'f', 'f/a': 'a' },
    renames: { f: 'd', 'd/a': 'f/a' },
  },
  'two files move into directories of each other’s names': {
    before: { a: 'a', b: 'b' },
    after: { 'a/x': 'b', 'b/x': 'a', 'a/new': 'new', 'b/new': 'new' },
    renames: { a: 'b/x', b: 'a/x' },
  },
  'three files in a circle': {
    before: { a: 'a', b: 'b', c: 'c' },
    after: { 'b/x': 'a', 'c/x': 'b', 'a/x': 'c' },
    renames: { a: 'b/x', b: 'c/x', c: 'a/x' },
  },
  'a chain of files that move below each other': {
    before: { a: 'a', b: 'b', c: 'c' },
    after: { 'b/x': 'a', 'c/x': 'b', d: 'c' },
    renames: { a: 'b/x', b: 'c/x', c: 'd' },
  },
};

let place = '';
let project = '';
beforeEach(() => {
  place = fs.realpathSync(fs.mkdtempSync('/var/tmp/ags-replace-'));
});
afterEach(() => fs.rmSync(place, { recursive: true }));

describe.each(Object.entries(CASES))('%s', (_, { before, after, renames = {} }) => {
  const changes = changesOf(before, after, renames);

  test('applies completely, in any order, and can be undone', async () => {
    for (const given of [changes, changes.toReversed()]) {
      fresh(before);
      const done = await applyAll({ project, changes: planned(given, before, after), journal: journal() });
      expect(done.filter(({ outcome }) => outcome !== 'applied')).toEqual([]);
      expect(leaves()).toEqual({ ...OTHER, ...after });
      await undoJournal(journal());
      expect(leaves()).toEqual({ ...OTHER, ...before });
    }
  });

  test('applies in any part, and the rest stays as it was', async () => {
    for (const some of subsets(changes)) {
      fresh(before);
      const done = await applyAll({ project, changes: planned(some, before, after), journal: journal() });
      const failed = new Set(done.flatMap(({ path, outcome }) => (outcome === 'applied' ? [] : [path])));
      const applied = some.filter(({ path, from }) => !failed.has(path) && !failed.has(from ?? path));
      expect([some, leaves()]).toEqual([some, { ...OTHER, ...applyTo(before, after, applied) }]);
    }
  });

  test('is recoverable after a crash at any step, and no file is lost', async () => {
    fresh(before);
    const all = inOrder(planned(changes, before, after));
    for (let done = 0; done <= all.length; done++) {
      fresh(before);
      await applyAll({ project, changes: planned(changes, before, after), journal: journal() });
      const file = JSON.parse(fs.readFileSync(join(journal(), 'journal.json'), 'utf8')) as { steps: object[] };
      await undoJournal(journal());
      const kept = `${journal()}-kept`;
      fs.renameSync(journal(), kept);
      // Applies the steps before the crash; the journal on disk lists all steps as pending.
      await applyAll({
        project,
        changes: all.slice(0, done).map(({ op }) => ({ op, expect: hostState(project, op.path) })),
        journal: journal(),
      });
      fs.writeFileSync(
        join(kept, 'journal.json'),
        JSON.stringify({ ...file, state: 'applying', steps: file.steps.map((step) => ({ ...step, outcome: null })) }),
      );
      const recovered = await recover(kept);
      const now = leaves();
      const applied = new Set(
        recovered.kind === 'interrupted'
          ? recovered.changes.flatMap(({ path, outcome }) => (outcome === 'applied' ? [path] : []))
          : [],
      );
      // A crash between the two halves of a rename leaves both names, never none.
      const texts = Object.values(now);
      for (const [from, to] of Object.entries(renames))
        expect([done, from, to, texts.includes(before[from] ?? '')]).toEqual([done, from, to, true]);
      for (const change of changes)
        expect([done, change, now[change.path]]).toEqual([
          done,
          change,
          applied.has(change.path) ? after[change.path] : before[change.path],
        ]);
      fs.rmSync(kept, { recursive: true });
    }
  });
});

describe('a new name that cannot be written', () => {
  const long = 'n'.repeat(300);

  test('restores the old file, also when it had to be removed first', async () => {
    const before = { x: 'x' };
    fresh(before);
    const after = { [`x/${long}`]: 'x', 'x/new': 'new' };
    const changes = changesOf(before, after, { x: `x/${long}` });
    const done = await applyAll({ project, changes: planned(changes, before, after), journal: journal() });
    expect(Object.fromEntries(done.map(({ path, outcome }) => [path, outcome === 'applied']))).toEqual({
      x: false,
      [`x/${long}`]: false,
      'x/new': false,
    });
    expect(leaves()).toEqual({ ...OTHER, ...before });
  });

  test('restores every file that was moved out of its way', async () => {
    const before = { a: 'a', b: 'b' };
    for (const [intoB, intoA] of [
      [long, 'x'],
      ['x', long],
    ] as const) {
      fresh(before);
      const renames = { a: `b/${intoB}`, b: `a/${intoA}` };
      const after = { [renames.a]: 'a', [renames.b]: 'b' };
      const changes = changesOf(before, after, renames);
      await applyAll({ project, changes: planned(changes, before, after), journal: journal() });
      expect(leaves()).toEqual({ ...OTHER, ...before });
    }
  });
});

test('a very long chain of renames is sorted at once', () => {
  const changes = Array.from({ length: 50_000 }, (_, i) => [
    { op: { kind: 'delete', path: `f${i}` } as const, requires: `f${i + 1}/x` },
    { op: { kind: 'symlink', path: `f${i + 1}/x`, target: 't' } as const },
  ]).flat();
  const order = new Map<string, number>(inOrder(changes).map(({ op }, index) => [op.path, index]));
  expect(order.size).toBe(100_000);
  expect(
    changes.filter(
      ({ op }) => op.kind === 'symlink' && (order.get(dirname(op.path)) ?? -1) > (order.get(op.path) ?? 0),
    ),
  ).toEqual([]);
});

interface Change {
  readonly path: string;
  readonly from?: string;
}

function changesOf(before: Leaves, after: Leaves, renames: Readonly<Record<string, string>>): Change[] {
  const moved = Object.entries(renames).map(([from, path]) => ({ path, from }));
  const named = new Set(moved.flatMap(({ path, from }) => [path, from]));
  const rest = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((path) => !named.has(path));
  return [...moved, ...rest.map((path) => ({ path }))];
}

function planned(changes: readonly Change[], before: Leaves, after: Leaves): PlannedChange[] {
  const kept = new Set(Object.keys(after).flatMap(ancestors));
  const prune = [...new Set(Object.keys(before).flatMap(ancestors))].filter((path) => !kept.has(path));
  const expect = (path: string) => hostState(project, path);
  return changes.flatMap(({ path, from }) => {
    const text = after[path];
    if (text === undefined) return [{ op: { kind: 'delete', path, prune } as const, expect: expect(path) }];
    const write: PlannedChange = { op: writing(path, text), expect: expect(path) };
    if (from === undefined) return [write];
    return [write, { op: { kind: 'delete', path: from, prune } as const, expect: expect(from), requires: path }];
  });
}

function writing(path: string, text: string): ApplyOp {
  return text.startsWith('-> ')
    ? { kind: 'symlink', path, target: text.slice(3) }
    : { kind: 'write', path, mode: '100644', bytes: Buffer.from(text) };
}

function applyTo(before: Leaves, after: Leaves, changes: readonly Change[]): Leaves {
  const gone = new Set(changes.flatMap(({ path, from }) => [path, from]));
  const kept = Object.entries(before).filter(([path]) => !gone.has(path));
  return Object.fromEntries([
    ...kept,
    ...changes.flatMap(({ path }) => (after[path] === undefined ? [] : [[path, after[path]] as const])),
  ]);
}

function subsets<T>(items: readonly T[]): T[][] {
  return Array.from({ length: 2 ** items.length - 1 }, (_, bits) => items.filter((_item, i) => ((bits + 1) >> i) & 1));
}

function fresh(files: Leaves): void {
  fs.rmSync(place, { recursive: true });
  project = join(place, 'project');
  for (const [path, text] of Object.entries({ ...OTHER, ...files })) {
    const at = join(project, path);
    fs.mkdirSync(dirname(at), { recursive: true });
    if (text.startsWith('-> ')) fs.symlinkSync(text.slice(3), at);
    else fs.writeFileSync(at, text);
  }
}

function leaves(): Leaves {
  const entries = fs.readdirSync(project, { recursive: true, withFileTypes: true }).filter((one) => !one.isDirectory());
  return Object.fromEntries(
    entries.map((entry) => {
      const at = join(entry.parentPath, entry.name);
      const text = entry.isSymbolicLink() ? `-> ${fs.readlinkSync(at)}` : fs.readFileSync(at, 'utf8');
      return [at.slice(project.length + 1), text];
    }),
  );
}

function journal(): string {
  return join(place, 'journal');
}
