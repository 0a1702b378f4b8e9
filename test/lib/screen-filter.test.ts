// test/lib/screen-filter.test.ts: a program inside may draw on the user's terminal and do nothing beyond the screen.
import { describe, expect, test } from 'vitest';
import { createScreenFilter } from '../../src/lib/screen-filter.ts';

const whole = (text: string | Buffer): string => createScreenFilter()(Buffer.from(text)).toString('utf8');

/** Splits the text at every position. */
function pieces(text: string | Buffer): string[] {
  const bytes = Buffer.from(text);
  return Array.from({ length: bytes.length + 1 }, (_, at) => {
    const filter = createScreenFilter();
    return Buffer.concat([filter(bytes.subarray(0, at)), filter(bytes.subarray(at))]).toString('utf8');
  });
}

const byteByByte = (text: string | Buffer): string => {
  const filter = createScreenFilter();
  return Buffer.concat([...Buffer.from(text)].map((byte) => filter(Buffer.of(byte)))).toString('utf8');
};

describe('passes drawing sequences', () => {
  test.each([
    ['plain text', 'hello\r\n\tworld\b \x07'],
    ['non-English text', 'ü “quoted” 漢字 🎉 — é'],
    ['colours and cursor', '\x1b[1;38;2;1;2;3mred\x1b[0m\x1b[2J\x1b[10;20H\x1b[?1049h\x1b[?25l\x1b[>4;1m\x1b[6n\x1b[c'],
    ['short sequences', '\x1b7\x1b8\x1b(B\x1b=\x1b>\x1bM\x1bc'],
    ['the title of the window', '\x1b]0;vim – a.txt\x1b\\'],
    ['a colour query', '\x1b]11;?\x1b\\\x1b]4;1;?\x1b\\'],
  ])('%s', (_, text) => {
    expect(whole(text)).toBe(text);
    expect(new Set(pieces(text))).toEqual(new Set([text]));
    expect(byteByByte(text)).toBe(text);
  });

  test('the same title with either terminator', () => expect(whole('\x1b]2;a\x07b')).toBe('\x1b]2;a\x1b\\b'));
});

describe('A121, A123, A126: drops sequences that reach beyond the screen, however they are split', () => {
  test.each([
    ['the clipboard', '\x1b]52;c;Y3VybCBldmlsIHwgc2g=\x07'],
    ['the clipboard, ended with ST', '\x1b]52;c;Y3VybA==\x1b\\'],
    ['the clipboard by C1', '\u009d52;c;Y3VybA==\x07'],
    ['a clipboard query', '\x1b]52;c;?\x07'],
    ['a link', '\x1b]8;;https://evil.test\x1b\\'],
    ['a notification', '\x1b]9;look here\x07\x1b]777;notify;a;b\x07'],
    ['the palette', '\x1b]4;1;#000000\x07\x1b]10;#000\x07'],
    ['a file for the terminal', '\x1b]1337;File=name=a;inline=0:AAAA\x07'],
    ['a message to an outer terminal', '\x1bPtmux;\x1b\x1b]52;c;Y3VybA==\x07\x1b\\'],
    ['device strings', '\x1bP$qm\x1b\\\x1b_Ga=T;AAAA\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\'],
    ['the title of GNU screen', '\x1bktitle\x1b\\'],
    ['the printer', '\x1b[5i\x1b[?5i'],
    ['the window', '\x1b[3;0;0t\x1b[21t'],
    ['a change of encoding', '\x1b%@'],
    ['a title with controls', '\x1b]0;a\x01b\x07'],
    ['an overlong title', `\x1b]0;${'x'.repeat(5000)}\x07`],
  ])('%s', (_, text) => {
    const around = `before ${text} after`;
    for (const seen of [whole(around), byteByByte(around), ...(text.length < 200 ? pieces(around) : [])])
      expect(seen.replaceAll(/\x1b\]0;[ -~]*\x1b\\/g, '')).toBe('before  after');
  });

  test('eight-bit controls are dropped', () =>
    expect(whole(Buffer.from([0x61, 0x9d, 0x35, 0x32, 0x3b, 0x62]))).toBe('a\ufffd52;b'));

  test('ten million bytes of an endless string use no memory, and the next sequence is recognized', () => {
    const filter = createScreenFilter();
    filter(Buffer.from('\x1b]52;c;'));
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 160; i++) expect(filter(Buffer.alloc(65_536, 'A'))).toHaveLength(0);
    expect(process.memoryUsage().rss - before).toBeLessThan(32 * 2 ** 20);
    expect(filter(Buffer.from('\x1b[1mok')).toString()).toBe('\x1b[1mok');
  });

  test('no combination of its parts passes a string that is not on the list', () => {
    const parts = [
      '\x1b',
      ']',
      '52;c;AAAA',
      '\x07',
      '\\',
      'P',
      '\u009d',
      '\u009c',
      'x',
      '\x18',
      '[',
      '5i',
      '0;t',
      '\x9b',
    ];
    let seed = 7;
    const random = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31);
    for (let round = 0; round < 20_000; round++) {
      const filter = createScreenFilter();
      let out = '';
      for (let i = 0; i < 12; i++) out += filter(Buffer.from(parts[random() % parts.length] ?? '')).toString('utf8');
      const rest = out.replaceAll(/\x1b\]0;[ -~\u00a0-\uffff]*\x1b\\/g, '');
      expect(rest).not.toMatch(/\x1b[\]PX^_k]|[\u0080-\u009f]|\x1b\[[0-9;?]*[ti]/);
    }
  });
});
