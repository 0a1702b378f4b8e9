// test/cli/ui/scroll.test.ts: a long text on a small screen.
import { expect, test } from 'vitest';
import { span } from '../../../src/cli/ui/cells.ts';
import { createScroll } from '../../../src/cli/ui/scroll.ts';

const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => [span(`line ${from + n}`)]);
const shown = (scroll: ReturnType<typeof createScroll>, size = { columns: 20, rows: 3 }): string[] =>
  scroll.body(size).map((line) => line.map((one) => one.text).join(''));

test('a log stays at its end while it grows, and where the user is reading once they have moved up', () => {
  const log = createScroll({ atEnd: true, indent: 2 });
  log.reset(lines(1, 10));
  expect(shown(log)).toEqual(['line 8', 'line 9', 'line 10']);
  log.add(lines(11, 12));
  expect(shown(log)).toEqual(['line 10', 'line 11', 'line 12']);
  log.key({ name: 'up' });
  log.add(lines(13, 20));
  expect(shown(log)).toEqual(['line 9', 'line 10', 'line 11']);
  log.key({ name: 'end' });
  log.add(lines(21, 21));
  expect(shown(log)).toEqual(['line 19', 'line 20', 'line 21']);
});

test('another width keeps the line at the top', () => {
  const diff = createScroll({ atEnd: false, indent: 1 });
  const long = Array.from({ length: 40 }, (_, n) => [span(`${n}: ${'x'.repeat(30)}`)]);
  diff.reset(long);
  shown(diff);
  diff.goTo(17);
  expect(shown(diff)[0]).toMatch(/^17: x+$/);
  for (const columns of [7, 80, 33]) expect(shown(diff, { columns, rows: 3 })[0]).toMatch(/^17: x*$/);
  expect(diff.top()).toBe(17);
});
