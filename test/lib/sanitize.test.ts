// test/lib/sanitize.test.ts: agent output must not control the terminal or hide from the reader (attacks A113, A121 to A123).
import { describe, expect, test } from 'vitest';
import { createSanitizer, invisibleIn, visible } from '../../src/lib/sanitize.ts';

const ESC = '\u001b';
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/u;

describe('a stream of output', () => {
  const cases: readonly (readonly [name: string, input: string, expected: string])[] = [
    ['plain text passes', 'hello, wörld 日本語 \u{1f600}\n\tindented\n', 'hello, wörld 日本語 \u{1f600}\n\tindented\n'],
    ['the clipboard cannot be set (OSC 52)', `a${ESC}]52;c;ZXZpbA==\u0007b`, 'a\\x1b]52;c;ZXZpbA==\\x07b'],
    ['the title cannot be set (OSC 0)', `${ESC}]0;title${ESC}\\`, '\\x1b]0;title\\x1b\\'],
    [
      'a link cannot lie about its target (OSC 8)',
      `${ESC}]8;;http://evil.test${ESC}\\ok`,
      '\\x1b]8;;http://evil.test\\x1b\\ok',
    ],
    ['the screen cannot be cleared', `${ESC}[2J${ESC}[1;1H${ESC}c`, '\\x1b[2J\\x1b[1;1H\\x1bc'],
    ['device control strings do not start', `${ESC}P1$r0m${ESC}_x${ESC}^y${ESC}Xz`, '\\x1bP1$r0m\\x1b_x\\x1b^y\\x1bXz'],
    ['terminal queries do not pass', `${ESC}[6n${ESC}[c${ESC}Z\u0005`, '\\x1b[6n\\x1b[c\\x1bZ\\x05'],
    ['8-bit controls are controls', '\u009b2J\u009d0;x\u009c\u0090q\u0085', '\\x9b2J\\x9d0;x\\x9c\\x90q\\x85'],
    ['a carriage return overwrites nothing', 'safe\revil\n', 'safe\\revil\n'],
    ['backspace and delete erase nothing', 'rm\b\bls\u007f', 'rm\\x08\\x08ls\\x7f'],
    ['Windows line ends are line ends', 'a\r\nb\r\r\nc', 'a\nb\\r\nc'],
    ['bidirectional controls are shown', 'a\u202eb\u2066c\u200fd', 'a<U+202E>b<U+2066>c<U+200F>d'],
    [
      'zero-width characters are shown',
      'pay\u200bpal\u00ad\ufeff\u{e0041}\u3164',
      'pay<U+200B>pal<U+00AD><U+FEFF><U+E0041><U+3164>',
    ],
    ['line separators do not break lines', 'a\u2028b\u2029c', 'a<U+2028>b<U+2029>c'],
    [
      'the emoji form of a sign passes, smuggled selectors do not',
      '⚠\ufe0f x\ufe0f ⚠\ufe0f\ufe0f',
      '⚠\ufe0f x<U+FE0F> ⚠\ufe0f<U+FE0F>',
    ],
    ['a lone surrogate is shown', 'a\ud83db\udc00', 'a<U+D83D>b<U+DC00>'],
    ['null bytes are shown', 'a\0b', 'a\\x00b'],
  ];
  test.each(cases)('%s', (_, input, expected) => {
    expect(all([input])).toBe(expected);
    expect(all([...input].flatMap((char) => char.split('')))).toBe(expected);
  });

  test('colours pass only on request', () => {
    const input = `${ESC}[1;38;2;255;0;0mred${ESC}[0m ${ESC}[31:2m`;
    expect(all([input])).toBe('\\x1b[1;38;2;255;0;0mred\\x1b[0m \\x1b[31:2m');
    expect(all([input], { keepColour: true })).toBe(`${input}${ESC}[0m`);
  });

  test('an unfinished colour is reset at the end', () => {
    expect(all([`${ESC}[31mred`], { keepColour: true })).toBe(`${ESC}[31mred${ESC}[0m`);
    expect(all([`${ESC}[31mred${ESC}[m`], { keepColour: true })).toBe(`${ESC}[31mred${ESC}[m`);
  });

  test('only a well-formed colour passes', () => {
    for (const fake of [
      `${ESC}[?25m`,
      `${ESC}[>4;2m`,
      `${ESC}[3 m`,
      `${ESC}[31`,
      `${ESC}[${'1;'.repeat(40)}m`,
      `${ESC}`,
    ]) {
      expect(all([fake], { keepColour: true })).not.toContain(ESC);
    }
  });

  test('a split sequence is recognized', () => {
    const sanitizer = createSanitizer({ keepColour: true });
    expect([
      sanitizer.push(`a${ESC}`),
      sanitizer.push('[3'),
      sanitizer.push('1mb'),
      sanitizer.push(`${ESC}]`),
      sanitizer.end(),
    ]).toEqual(['a', '', `${ESC}[31mb`, '\\x1b]', `${ESC}[0m`]);
  });

  test('a long line is cut with a notice, and the next line is complete', () => {
    expect(all(['123456789\nnext\n'], { maxLine: 4 })).toBe('1234…[5 more characters cut]\nnext\n');
    expect(all(['1234\n12345'], { maxLine: 4 })).toBe('1234\n1234…[1 more characters cut]');
    expect(all(['123\u{1f600}'], { maxLine: 4 })).toBe('123…[2 more characters cut]');
    expect(all([`12\u0007`], { maxLine: 4 })).toBe('12…[1 more characters cut]');
  });

  test('a colour does not leak out of a cut line', () => {
    expect(all([`${ESC}[31m123456${ESC}[0m\nnext`], { maxLine: 8, keepColour: true })).toBe(
      `${ESC}[31m123${ESC}[0m…[7 more characters cut]\nnext`,
    );
  });

  test('ten megabytes without a newline use little memory and time', () => {
    for (const piece of ['x', ESC, `${ESC}[1`, '\r', '\u202e', `${ESC}[31m`]) {
      const sanitizer = createSanitizer({ maxLine: 1000, keepColour: true });
      const chunk = piece.repeat(Math.ceil(65_536 / piece.length));
      let shown = 0;
      for (let sent = 0; sent < 10_000_000; sent += chunk.length) shown += sanitizer.push(chunk).length;
      expect(shown + sanitizer.end().length).toBeLessThan(1100);
    }
  });

  test('it can be used again after the end', () => {
    const sanitizer = createSanitizer({ maxLine: 4 });
    expect(sanitizer.push('12345') + sanitizer.end()).toBe('1234…[1 more characters cut]');
    expect(sanitizer.push('1234') + sanitizer.end()).toBe('1234');
  });

  test('any input, however it is split, gives the same safe text', () => {
    const random = generator(20_260_101);
    for (let round = 0; round < 3000; round++) {
      const options = { maxLine: round % 3 === 0 ? 12 : 4096, keepColour: round % 2 === 0 };
      const text = randomText(random, 60);
      const whole = all([text], options);
      expect(all(randomCuts(random, text), options)).toBe(whole);
      const rest = options.keepColour ? whole.replaceAll(new RegExp(`${ESC}\\[[0-9;:]*m`, 'g'), '') : whole;
      expect(rest.replace(/(?<=\p{Emoji})\ufe0f/gu, '')).not.toMatch(
        /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/u,
      );
      for (const line of rest.split('\n')) expect(line.length).toBeLessThanOrEqual(options.maxLine + 40);
    }
  });
});

describe('one line of text', () => {
  test('is unchanged when it is plain', () => {
    for (const text of ['', 'src/café/日本語.ts', 'a — b', '%s%n', '<img src=x onerror=alert(1)>'])
      expect(visible(text)).toBe(text);
  });

  test('shows line ends, tabs, controls and invisible characters', () => {
    expect(
      visible(`a\nb\tc\rd${ESC}]0;x\u0007 \u009b \u202e \u00a0\u3000\u2800 ⚠\ufe0f \u{1f468}\u200d\u{1f469}`),
    ).toBe('a\\nb\\tc\\rd\\x1b]0;x\\x07 \\x9b <U+202E> <U+00A0><U+3000><U+2800> ⚠<U+FE0F> \u{1f468}<U+200D>\u{1f469}');
  });

  test('contains no control or invisible character, for any input', () => {
    const random = generator(7);
    for (let round = 0; round < 3000; round++) {
      expect(visible(randomText(random, 60))).not.toMatch(UNSEEN);
    }
    const passed: string[] = [];
    for (let code = 0; code <= 0x10_ffff; code++) {
      const char = String.fromCodePoint(code);
      if (visible(char) === char && UNSEEN.test(char)) passed.push(code.toString(16));
    }
    expect(passed).toEqual([]);
  });
});

test('invisible characters in source are named, ordinary ones are not', () => {
  expect(invisibleIn('if (admin\u202e \u2066) // \u200b\u202e')).toEqual(['U+202E', 'U+2066', 'U+200B']);
  expect(invisibleIn('\ufeffa\r\nb\f ⚠\ufe0f \u{1f468}\u200d\u{1f469}\u{1f3fd}\u200d\u{1f466}\n\t')).toEqual([]);
  expect(invisibleIn('a\rb \ufeff x\ufe0f ⚠\ufe0f\ufe01 \u200d')).toEqual([
    'U+000D',
    'U+FEFF',
    'U+FE0F',
    'U+FE01',
    'U+200D',
  ]);
});

function all(chunks: readonly string[], options: { maxLine?: number; keepColour?: boolean } = {}): string {
  const sanitizer = createSanitizer(options);
  return chunks.map((chunk) => sanitizer.push(chunk)).join('') + sanitizer.end();
}

const PIECES = [
  ESC,
  `${ESC}[`,
  `${ESC}[3`,
  `${ESC}[31m`,
  `${ESC}[0m`,
  `${ESC}]0;t\u0007`,
  'm',
  ';',
  '1',
  '\r',
  '\n',
  '\r\n',
  '\t',
  '\b',
  '\u009b',
  '\u202e',
  '\u200b',
  '\ufeff',
  '\u2028',
  '⚠',
  '\ufe0f',
  '\u{1f600}',
  '\ud83d',
  '\ude00',
  '\u{e0041}',
  'a',
  'hello',
  'é',
  '日',
  ' ',
  '\0',
  '#',
];

function randomText(random: () => number, pieces: number): string {
  const one = (): string => {
    if (random() < 0.8) return PIECES[Math.floor(random() * PIECES.length)] ?? '';
    return random() < 0.5
      ? String.fromCharCode(Math.floor(random() * 256))
      : String.fromCodePoint(Math.floor(random() * 0x11_0000));
  };
  return Array.from({ length: Math.floor(random() * pieces) }, one).join('');
}

function randomCuts(random: () => number, text: string): string[] {
  const chunks: string[] = [];
  for (let at = 0; at < text.length;) {
    const size = Math.floor(random() * 6);
    chunks.push(text.slice(at, at + size));
    at += size;
  }
  return chunks;
}

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
