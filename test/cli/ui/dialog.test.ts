// test/cli/ui/dialog.test.ts: questions of the full screen: nothing is chosen by accident.
import { expect, test } from 'vitest';
import { span } from '../../../src/cli/ui/cells.ts';
import { askChoice, askText, type Dialog } from '../../../src/cli/ui/dialog.ts';
import { createKeyReader } from '../../../src/cli/ui/keys.ts';
import { footerLine, sheet } from '../../../src/cli/ui/frame.ts';

function type(dialog: Dialog, bytes: string): void {
  const reader = createKeyReader((key) => dialog.key(key));
  reader.push(Buffer.from(bytes));
  reader.close();
}

function question(): { done: string[]; dialog: Dialog } {
  const done: string[] = [];
  const choice = (label: string): { label: string; act(): void } => ({ label, act: () => void done.push(label) });
  const dialog = askChoice({
    title: 'Merge x',
    text: [[span('3 files')]],
    cancel: choice('Cancel'),
    choices: [choice('Merge')],
  });
  return { done, dialog };
}

test.each([
  ['make it so\r', ['Cancel']],
  ['y \r', ['Cancel']],
  ['\u001b[200~\u001b[B\r\u001b[201~', []],
  ['\u001b[B', []],
  ['\u001b[B\r', ['Merge']],
  ['\t\r', ['Merge']],
  ['\u001b[B\u001b[A\r', ['Cancel']],
])('a merge needs an arrow and Enter; typed or pasted text does not merge: %j', (bytes, done) => {
  const one = question();
  type(one.dialog, bytes);
  expect(one.done).toEqual(done);
});

test('a line of text can be edited, pasted into and sent; Escape sends nothing', () => {
  const sent: string[] = [];
  const open = (): Dialog =>
    askText({
      title: 'Answer',
      text: [],
      suggestions: ['red', 'blue'],
      done: (text) => void sent.push(text),
      cancel: () => void sent.push('cancelled'),
    });
  type(open(), '\r');
  type(open(), 'blaux\u007f 日\u001b[D\u001b[Dund\u001b[200~ a\r\nb\u001b[201~\r');
  type(open(), '\u001b[B\u001b[B!\r');
  type(open(), 'lost\u0015kept\r');
  const cancelled = open();
  cancelled.key({ name: 'escape' });
  expect(sent).toEqual(['blauund a\nb 日', 'blue!', 'kept', 'cancelled']);
});

test('the answers of a question stay on the screen when its text is long, and the cursor on its line', () => {
  const text = Array.from({ length: 50 }, (_, n) => [span(`line ${n}`)]);
  const dialog = askChoice({ title: 'T', text, cancel: { label: 'Cancel', act: () => undefined }, choices: [] });
  const lines = sheet(dialog, { columns: 40, rows: 12 }).lines.map((line) => line.map((one) => one.text).join(''));
  expect(lines).toHaveLength(9);
  expect(lines.slice(1, 4)).toEqual(['line 0', 'line 1', '  …']);
  expect(lines.at(-1)).toBe('>  Cancel ');
  const asked = askText({ title: 'T', text, suggestions: [], done: () => undefined, cancel: () => undefined });
  const { lines: shown, cursor } = sheet(asked, { columns: 40, rows: 12 });
  expect(shown[cursor?.y ?? 0]?.[0]?.text).toBe('> ');
});

test('the footer names as many keys as fit, and always help and the way out', () => {
  const view = {
    title: () => [],
    body: () => [],
    key: () => false,
    hints: () =>
      [
        ['d', 'diff'],
        ['m', 'merge'],
        ['s', 'stop'],
      ] as const,
  };
  const foot = (columns: number): string =>
    footerLine({ busy: null, message: null, dialog: null, view, nested: false, columns })
      .map((one) => one.text)
      .join('');
  expect(foot(80)).toBe('d diff  m merge  s stop  ? help  q quit');
  expect(foot(30)).toBe('d diff  ? help  q quit');
  expect(foot(10)).toBe('? help  q quit');
});
