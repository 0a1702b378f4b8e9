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

function taken(pattern: string): string[] {
  return chosen({ accept: [pattern] }).take;
}

const ALL = CHANGES.map(({ path }) => path);
const others = (...named: string[]): string[] => ALL.filter((path) => !named.includes(path));

test('without flags everything is left for later', () => {
  expect(chosen({})).toEqual({ take: [], drop: [], left: ALL, errors: [] });
});

test('accept-all takes neither what runs somewhere nor what conflicts', () => {
  const left = ['Makefile', '.github/workflows/ci.yml', 'src/clash.ts'];
  expect(chosen({ acceptAll: true })).toEqual({ take: others(...left), drop: [], left, errors: [] });
});

test('a file that runs somewhere is taken when its exact path is given as risky, alone or with accept-all', () => {
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
  'risky takes no pattern: %s',
  (pattern) => {
    expect(chosen({ acceptAll: true, risky: [pattern] })).toMatchObject({
      left: ['Makefile', '.github/workflows/ci.yml', 'src/clash.ts'],
      errors: [`not-found ${pattern}`],
    });
  },
);

test('accepting a file that runs somewhere by its path is an error that asks for risky', () => {
  expect(chosen({ accept: ['Makefile'] })).toEqual({ take: [], drop: [], left: ALL, errors: ['risky Makefile'] });
  expect(chosen({ accept: ['Makefile'], risky: ['Makefile'] })).toMatchObject({ take: ['Makefile'], errors: [] });
});

test('accepting a pattern passes over what runs somewhere, without an error', () => {
  expect(chosen({ accept: ['**'] })).toMatchObject({
    left: ['Makefile', '.github/workflows/ci.yml', 'src/clash.ts'],
    errors: [],
  });
  expect(chosen({ accept: ['.github/'] })).toEqual({ take: [], drop: [], left: ALL, errors: [] });
});

test('a conflict is never taken, whatever names it', () => {
  for (const flags of [{ accept: ['src/clash.ts'] }, { risky: ['src/clash.ts'] }]) {
    expect(chosen(flags)).toEqual({ take: [], drop: [], left: ALL, errors: ['conflict src/clash.ts'] });
  }
  expect(chosen({ accept: ['src/'] })).toMatchObject({
    take: ['src/a.ts', 'src/deep/b.ts', 'src/merged.ts'],
    errors: [],
  });
});

test('a directory, a pattern in a name and a pattern over names select what they say', () => {
  expect(taken('src/deep/')).toEqual(['src/deep/b.ts']);
  expect(taken('src/*.ts')).toEqual(['src/a.ts', 'src/merged.ts']);
  expect(taken('*.md')).toEqual(['readme.md']);
  expect(taken('**/*.ts')).toEqual(['src/a.ts', 'src/deep/b.ts', 'src/merged.ts', 'new/name.ts']);
  expect(taken('s*/')).toEqual(['src/a.ts', 'src/deep/b.ts', 'src/merged.ts']);
  expect(taken('src/**')).toEqual(['src/a.ts', 'src/deep/b.ts', 'src/merged.ts']);
  for (const nothing of ['src', '*.ts', 'rc/', 'readme.md/', 'readme.md/**', 'readme?md', '']) {
    expect(chosen({ accept: [nothing] })).toEqual({ take: [], drop: [], left: ALL, errors: [`not-found ${nothing}`] });
  }
});

test('a star is a pattern in accept, and part of the name in risky', () => {
  const starred = [change('a*'), change('ab')];
  expect(select(starred, { ...NONE, accept: ['a*'] }).take).toEqual(starred);
  expect(select(starred, { ...NONE, risky: ['a*'] }).take).toEqual([starred[0]]);
});

test('a rename is one change: either name selects it, a directory only by the new name', () => {
  for (const name of ['old/name.ts', 'new/name.ts', 'new/'])
    expect(chosen({ accept: [name] }).take).toEqual(['new/name.ts']);
  expect(chosen({ accept: ['old/'] }).errors).toEqual(['not-found old/']);
});

test('discard-all drops everything, also what runs somewhere and what conflicts', () => {
  expect(chosen({ discardAll: true })).toEqual({ take: [], drop: ALL, left: [], errors: [] });
});

test('a name decides before all', () => {
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

test('accepting and discarding the same path is an error and does neither', () => {
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

test('a name made to exhaust a pattern matcher does not', () => {
  const hostile = [change(`${'a/'.repeat(1000)}${'a'.repeat(250)}`)];
  expect(select(hostile, { ...NONE, accept: [`${'**/'.repeat(30)}${'*a'.repeat(60)}b`] }).take).toEqual([]);
});
