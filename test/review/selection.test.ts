import { expect, test } from 'vitest';
import type { Change, Lane } from '../../src/protocol/changes.ts';
import { select, type SelectionFlags } from '../../src/review/selection.ts';

const NONE: SelectionFlags = { accept: [], acceptAll: false, discard: [], discardAll: false, risky: [] };

function change(path: string, more: Partial<Change> = {}): Change {
  return {
    path,
    kind: 'modified',
    before: null,
    after: null,
    lane: 'inert',
    reasons: [],
    conflict: 'none',
    ignored: false,
    ...more,
  };
}

const at = (lane: Lane): Partial<Change> => ({ lane });

const CHANGES = [
  change('src/a.ts'),
  change('src/deep/b.ts'),
  change('readme.md'),
  change('Makefile', at('host')),
  change('.github/workflows/ci.yml', at('ci')),
  change('src/clash.ts', { conflict: 'conflicts' }),
  change('src/merged.ts', { conflict: 'merges' }),
  change('new/name.ts', { kind: 'renamed', from: 'old/name.ts' }),
];

function chosen(flags: Partial<SelectionFlags>): { take: string[]; drop: string[]; left: string[]; errors: string[] } {
  const { take, drop, left, errors } = select(CHANGES, { ...NONE, ...flags });
  return {
    take: paths(take),
    drop: paths(drop),
    left: paths(left),
    errors: errors.map(({ path, problem }) => `${problem} ${path}`),
  };
}

function paths(list: readonly Change[]): string[] {
  return list.map(({ path }) => path);
}

function accepted(pattern: string): string[] {
  return chosen({ accept: [pattern] }).take;
}

const ALL = CHANGES.map(({ path }) => path);
const others = (...named: string[]): string[] => ALL.filter((path) => !named.includes(path));

test('without flags every change stays unreviewed', () => {
  expect(chosen({})).toEqual({ take: [], drop: [], left: ALL, errors: [] });
});

test('accept-all takes neither risky files nor conflicts', () => {
  const left = ['Makefile', '.github/workflows/ci.yml', 'src/clash.ts'];
  expect(chosen({ acceptAll: true })).toEqual({ take: others(...left), drop: [], left, errors: [] });
});

test('risky with an exact path takes a risky file, alone or with accept-all', () => {
  expect(chosen({ risky: ['Makefile'] })).toEqual({
    take: ['Makefile'],
    drop: [],
    left: others('Makefile'),
    errors: [],
  });
  const left = ['.github/workflows/ci.yml', 'src/clash.ts'];
  expect(chosen({ acceptAll: true, risky: ['Makefile'] })).toEqual({
    take: others(...left),
    drop: [],
    left,
    errors: [],
  });
});

test.each(['*', '**', 'Make*', './Makefile', 'makefile', 'Makefile/', '.github/', '.github/**'])(
  'risky accepts no pattern: %s',
  (pattern) => {
    expect(chosen({ acceptAll: true, risky: [pattern] })).toMatchObject({
      left: ['Makefile', '.github/workflows/ci.yml', 'src/clash.ts'],
      errors: [`not-found ${pattern}`],
    });
  },
);

test('accepting a risky file by its path is an error that suggests risky', () => {
  expect(chosen({ accept: ['Makefile'] })).toEqual({ take: [], drop: [], left: ALL, errors: ['risky Makefile'] });
  expect(chosen({ accept: ['Makefile'], risky: ['Makefile'] })).toMatchObject({ take: ['Makefile'], errors: [] });
});

test('accepting a pattern skips risky files without an error', () => {
  expect(chosen({ accept: ['**'] })).toMatchObject({
    left: ['Makefile', '.github/workflows/ci.yml', 'src/clash.ts'],
    errors: [],
  });
  expect(chosen({ accept: ['.github/'] })).toEqual({ take: [], drop: [], left: ALL, errors: [] });
});

test('no flag takes a conflict', () => {
  for (const flags of [{ accept: ['src/clash.ts'] }, { risky: ['src/clash.ts'] }]) {
    expect(chosen(flags)).toEqual({ take: [], drop: [], left: ALL, errors: ['conflict src/clash.ts'] });
  }
  expect(chosen({ accept: ['src/'] })).toMatchObject({
    take: ['src/a.ts', 'src/deep/b.ts', 'src/merged.ts'],
    errors: [],
  });
});

test('a directory, a pattern within a name and a pattern across directories select matching files', () => {
  expect(accepted('src/deep/')).toEqual(['src/deep/b.ts']);
  expect(accepted('src/*.ts')).toEqual(['src/a.ts', 'src/merged.ts']);
  expect(accepted('*.md')).toEqual(['readme.md']);
  expect(accepted('**/*.ts')).toEqual(['src/a.ts', 'src/deep/b.ts', 'src/merged.ts', 'new/name.ts']);
  expect(accepted('s*/')).toEqual(['src/a.ts', 'src/deep/b.ts', 'src/merged.ts']);
  expect(accepted('src/**')).toEqual(['src/a.ts', 'src/deep/b.ts', 'src/merged.ts']);
  for (const nothing of ['src', '*.ts', 'rc/', 'readme.md/', 'readme.md/**', 'readme?md', '']) {
    expect(chosen({ accept: [nothing] })).toEqual({ take: [], drop: [], left: ALL, errors: [`not-found ${nothing}`] });
  }
});

test('a star is a pattern in accept, and a literal character in risky', () => {
  const starred = [change('a*'), change('ab')];
  expect(select(starred, { ...NONE, accept: ['a*'] }).take).toEqual(starred);
  expect(select(starred, { ...NONE, risky: ['a*'] }).take).toEqual([starred[0]]);
});

test('a rename is one change: either name selects it, a directory only by the new name', () => {
  for (const name of ['old/name.ts', 'new/name.ts', 'new/'])
    expect(chosen({ accept: [name] }).take).toEqual(['new/name.ts']);
  expect(chosen({ accept: ['old/'] }).errors).toEqual(['not-found old/']);
});

test('discard-all discards every file, including risky files and conflicts', () => {
  expect(chosen({ discardAll: true })).toEqual({ take: [], drop: ALL, left: [], errors: [] });
});

test('a named path or pattern overrides the all flags', () => {
  expect(chosen({ discardAll: true, accept: ['readme.md'] })).toEqual({
    take: ['readme.md'],
    drop: others('readme.md'),
    left: [],
    errors: [],
  });
  expect(chosen({ acceptAll: true, discard: ['src/', 'Makefile'] })).toEqual({
    take: ['readme.md', 'new/name.ts'],
    drop: ['src/a.ts', 'src/deep/b.ts', 'Makefile', 'src/clash.ts', 'src/merged.ts'],
    left: ['.github/workflows/ci.yml'],
    errors: [],
  });
  expect(chosen({ acceptAll: true, discardAll: true })).toEqual({ take: [], drop: [], left: ALL, errors: [] });
});

test('accepting and discarding the same path is an error', () => {
  expect(chosen({ accept: ['src/a.ts'], discard: ['src/*'] })).toMatchObject({
    take: [],
    errors: ['contradiction src/a.ts'],
  });
  expect(chosen({ risky: ['Makefile'], discard: ['Makefile'] })).toEqual({
    take: [],
    drop: [],
    left: ALL,
    errors: ['contradiction Makefile'],
  });
});

test('no name makes the pattern matcher slow', () => {
  const hostile = [change(`${'a/'.repeat(1000)}${'a'.repeat(250)}`)];
  expect(select(hostile, { ...NONE, accept: [`${'**/'.repeat(30)}${'*a'.repeat(60)}b`] }).take).toEqual([]);
});
