// test/attacks/copy-directory.test.ts: in a copy of the project, a directory in place of a file does not hide an agent's work.
import { expect, test } from 'vitest';
import { planIndex } from '../../src/results/agent-index.ts';

test('A106: a directory in place of a link removes the link, and its files come out', () => {
  const tip = new Map(['a.txt', 'lnk', 'lib'].map((path) => [path, { mode: modeOf(path), oid: '1'.repeat(40) }]));
  const { set, add } = planIndex({
    hidden: [],
    workspace: 'copy',
    listing: { entries: [], directories: [], removed: [], refused: [] },
    facts: { head: null, headTree: null, tip, base: tip, gone: new Set(), others: ['lnk/deep/planted', 'lib/x'] },
    isScratch: () => false,
  });
  expect({ set: [...set], add }).toEqual({ set: [['lnk', null]], add: ['lnk/deep/planted', 'a.txt'] });
});

const modeOf = (path: string): string => ({ lnk: '120000', lib: '160000' })[path] ?? '100644';
