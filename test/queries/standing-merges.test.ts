// test/queries/standing-merges.test.ts: what a task's events say about its merges.
import { expect, test } from 'vitest';
import type { EventLine } from '../../src/protocol/event.ts';
import { followMerges, lastStanding, type StandingMerge } from '../../src/queries/standing-merges.ts';

const merge = (commit: string, files: number, at: string): EventLine =>
  ({ type: 'merge.done', ref: 'refs/heads/main', commit, files, of: 3, at }) as EventLine;
const undo = { type: 'merge.undone', ref: 'refs/heads/main', commit: 'x', at: '2026-11-03T00:00:00Z' } as EventLine;
const [first, second] = [merge('a', 1, '2026-11-01T00:00:00Z'), merge('b', 2, '2026-11-02T00:00:00Z')];
const after = (...events: EventLine[]): StandingMerge[] => {
  const merges: StandingMerge[] = [];
  for (const event of events) followMerges(merges, event);
  return merges;
};

test('an undo takes back the last merge, and the one before stands', () => {
  const ready = { task: {}, run: { state: 'ready' } } as const;
  expect(lastStanding(after(first, second, undo), ready)).toEqual({ branch: 'main', commit: 'a', files: 1, of: 3 });
  expect(lastStanding(after(first, undo, undo), ready)).toBe(null);
});

test('when all is merged, the last of several merges stands for all files', () => {
  const whole = { task: {}, run: { state: 'merged' } } as const;
  expect(lastStanding(after(first, second), whole)).toEqual({ branch: 'main', commit: 'b', files: 3, of: 3 });
});

test('merges on another machine, before an import, do not stand here', () => {
  const imported = {
    at: '2026-11-01T12:00:00Z',
    exportedAt: '2026-11-01T11:00:00Z',
    file: 'x.ags',
    name: 'x',
    format: 1,
    merges: [],
  };
  const carried = { task: { imported }, run: { state: 'ready' } } as const;
  expect(lastStanding(after(first), carried)).toBe(null);
  expect(lastStanding(after(first, second), carried)?.commit).toBe('b');
});
