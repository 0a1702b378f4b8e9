// test/cli/sentences.test.ts: messages that are put together from parts read as sentences.
import { expect, test } from 'vitest';
import { createPaint } from '../../src/cli/terminal/colour.ts';
import { errorText } from '../../src/cli/terminal/format.ts';
import { showEvent } from '../../src/cli/terminal/show-event.ts';
import { AgsError, inOneLine } from '../../src/protocol/errors.ts';
import type { TaskEvent } from '../../src/protocol/event.ts';

const line = (event: TaskEvent): string =>
  showEvent(
    { ...event, seq: 1, at: '', task: 'x', prev: '' },
    {
      paint: createPaint(false),
      width: 80,
      verbose: false,
    },
  );

test('a part that is a sentence of its own brings no second full stop, and paths and ranges keep their dots', () => {
  const why = 'The file "x.sql" is missing.';
  expect(errorText(new AgsError('service.failed', `The seed failed: ${why}.`, { hint: 'Give it a name..' }))).toBe(
    'ags: The seed failed: The file "x.sql" is missing.\n     Give it a name.\n',
  );
  const dots = 'See main..topic, ../a, a/.. and more... of it';
  expect(new AgsError('usage.invalid', dots).message).toBe(dots);
});

test('a hint of several lines is one line where there is room for no more', () => {
  const error = new AgsError('agent.unknown', 'No agent was chosen.', {
    hint: 'Choose one: --agent claude\nAll: ags agents',
  });
  expect(inOneLine(error)).toBe('No agent was chosen. Choose one: --agent claude All: ags agents');
  expect(inOneLine(new AgsError('setup.failed', 'It failed.\n  sh: x: not found', { hint: 'Try it.' }))).toBe(
    'It failed. sh: x: not found. Try it.',
  );
});

test.each<[TaskEvent, string]>([
  [
    { type: 'run.ended', state: 'failed', reason: 'It failed.\n  Try again.', exitCode: 1 },
    'failed: It failed. Try again.\n',
  ],
  [{ type: 'run.noticed', text: 'One.\nTwo.' }, 'One. Two.\n'],
  [
    { type: 'run.noticed', text: 'It failed: the file "x" is missing.. Next.' },
    'It failed: the file "x" is missing. Next.\n',
  ],
  [{ type: 'agent.asked', question: 'Red\nor blue?' }, '  asks: Red or blue?\n'],
  [
    { type: 'network.denied', host: 'a\u001b[2J', port: 1, reason: 'no\nrule' },
    '  network: a\\x1b[2J:1 refused, no rule\n',
  ],
])('a log shows line breaks in a sentence as spaces, never as "\\n" (%#)', (event, text) => {
  expect(line(event)).toBe(text);
});
