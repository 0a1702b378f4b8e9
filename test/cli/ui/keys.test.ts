// test/cli/ui/keys.test.ts: keys out of the bytes of a terminal, however they arrive.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createKeyReader, type Key } from '../../../src/cli/ui/keys.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function read(...chunks: (string | Buffer)[]): string[] {
  const keys: string[] = [];
  const reader = createKeyReader((key: Key) => keys.push('text' in key ? `${key.name} ${key.text}` : key.name));
  for (const chunk of chunks) reader.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  vi.runAllTimers();
  reader.close();
  return keys;
}

test.each([
  ['letters', 'aé日🎉', ['char a', 'char é', 'char 日', 'char 🎉']],
  ['arrows, normal and application mode', '\u001b[A\u001bOB\u001b[C\u001bOD', ['up', 'down', 'right', 'left']],
  ['Home, End and page keys', '\u001b[H\u001b[4~\u001b[5~\u001b[6~', ['home', 'end', 'page-up', 'page-down']],
  ['Enter, Tab, Backspace, Ctrl', '\r\t\u007f\u0003\u001a', ['enter', 'tab', 'backspace', 'ctrl-c', 'ctrl-z']],
  ['a lone Escape', '\u001b', ['escape']],
  ['Escape twice', '\u001b\u001b', ['escape', 'escape']],
  ['Escape and a key at once, also on a slow connection', '\u001b?\u001bm', ['escape', 'char ?', 'escape', 'char m']],
  [
    'keys with modifiers, function keys and mouse, which mean nothing',
    '\u001b[1;5A\u001b[15~\u001b[<0;1;1M',
    ['unknown', 'unknown', 'unknown'],
  ],
  [
    'answers of the terminal to nobody',
    '\u001b[?1;2c\u001b[0n\u001b]11;rgb:0000/0000/0000\u0007\u001bP1$r0m\u001b\\',
    ['unknown', 'unknown', 'unknown', 'unknown'],
  ],
])('%s', (_name, bytes, keys) => {
  expect(read(bytes)).toEqual(keys);
  // In pieces, byte by byte.
  expect(read(...[...Buffer.from(bytes)].map((byte) => Buffer.from([byte])))).toEqual(keys);
});

test('pasted text is one key, also with line breaks, escape sequences and in pieces', () => {
  const paste = ['\u001b[200~make it so\r', 'y\u001b[A', 'm\r\u001b[20', '1~q'];
  expect(read(...paste)).toEqual(['paste make it so\ry\u001b[Am\r', 'char q']);
});
