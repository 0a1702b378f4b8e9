// test/attacks/copy-directory.test.ts: an agent in a copy of the project cannot keep its work from being taken by putting a directory where a file was.
import { expect, test } from 'vitest';
import { planIndex } from '../../src/results/agent-index.ts';

test('A106: where a link was and a directory is now, the link is gone and what is below it is taken', () => {
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
