// test/cli/ui/cells.test.ts: lines of the full screen: widths, wrapping, and nothing that a terminal could obey.
import { expect, test } from 'vitest';
import { clip, draw, fromPainted, lineWidth, sides, span, wrapLine } from '../../../src/cli/ui/cells.ts';
import { createPaint } from '../../../src/cli/terminal/colour.ts';
import { widthOf } from '../../../src/cli/terminal/format.ts';

const text = (line: readonly { text: string }[]): string => line.map((one) => one.text).join('');

test('control and invisible characters of a text never reach the terminal', () => {
  const evil = 'a\u001b[2Jb\u0007c\rd\ne\u009bf\u202eg\u200bh\u001b]0;x\u001b\\';
  expect(draw([span(evil)], 200, true)).toBe('a\\x1b[2Jb\\x07c\\rd\\ne\\x9bf<U+202E>g<U+200B>h\\x1b]0;x\\x1b\\');
  // eslint-disable-next-line no-control-regex
  for (const line of wrapLine([span(evil)], 7)) expect(draw(line, 7, false)).toMatch(/^[ -~]{1,7}$/);
});

test('our own colours become styles; an escape sequence within the text stays text', () => {
  const paint = createPaint(true);
  expect(fromPainted(`x ${paint('red', 'bad \u001b[2J')} y`)).toEqual([
    span('x '),
    span('bad \u001b[2J', 'red'),
    span(' y'),
  ]);
  expect(draw(fromPainted(paint('red', 'bad \u001b[2J')), 80, true)).toBe('\u001b[31mbad \\x1b[2J\u001b[0m');
});

test('without colour, bold and reverse stay and colours go', () => {
  expect(draw([span('a', 'bold'), span('b', 'red', 'reverse'), span('c', 'green')], 80, false)).toBe(
    '\u001b[1ma\u001b[0m\u001b[7mb\u001b[0mc',
  );
});

test.each(['日本語のテキスト', 'a日b本c語', 'ab🎉cd🎉', 'plain text', 'e\u0301e\u0301e\u0301'])(
  'no line is wider than the screen, whatever the characters: %s',
  (words) => {
    for (let width = 1; width < 20; width++) {
      expect(widthOf(draw([span(words)], width, false))).toBeLessThanOrEqual(width);
      for (const line of wrapLine([span(words)], width, 1))
        expect(lineWidth(line)).toBeLessThanOrEqual(Math.max(2, width));
    }
  },
);

test('a cut line ends in "…", and a wrapped one loses nothing but the space at the break', () => {
  expect(text(clip([span('abc'), span('def', 'bold')], 5))).toBe('abcd…');
  expect(text(clip([span('日本語')], 5))).toBe('日本…');
  expect(text(clip([span('日本語')], 4))).toBe('日…');
  expect(wrapLine([span('one two three four')], 9).map(text)).toEqual(['one two', 'three', 'four']);
  expect(wrapLine([span('one two three')], 9, 2).map(text)).toEqual(['one two', '  three']);
  expect(
    wrapLine([span('x'.repeat(20))], 9)
      .map(text)
      .join(''),
  ).toBe('x'.repeat(20));
  expect(wrapLine([span('a\tb')], 20).map(text)).toEqual(['a       b']);
});

test('the right side of a line wins over the left', () => {
  expect(text(sides([span('left')], [span('right')], 12))).toBe('left   right');
  expect(text(sides([span('a long left side')], [span('right')], 12))).toBe('a lon… right');
});
