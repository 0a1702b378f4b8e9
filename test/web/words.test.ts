// test/web/words.test.ts: timeline items, goals, search and sanitizing, without a browser.
import { expect, test } from 'vitest';
import type { ApiEvent, ApiTask } from '../../src/protocol/api/api.ts';
import { createFold } from '../../web/src/task/fold.ts';
import { passes } from '../../web/src/task/item.ts';
import { goalsOf, sharedFiles } from '../../web/src/tasks/goals.ts';
import { clean, cleanLine } from '../../web/src/text/clean.ts';
import { linesOf, parseSearch } from '../../web/src/tasks/order.ts';
import { tasksToAnnounce } from '../../web/src/shell/news.ts';

const at = '2026-01-01T12:00:00.000Z';
const read = (path: string) => ({ kind: 'read', path });

function fold(events: readonly Record<string, unknown>[]) {
  const folded = createFold();
  for (const [index, event] of events.entries()) folded.push({ seq: index + 1, at, ...event } as unknown as ApiEvent);
  return folded.items;
}

test('consecutive reads are one item, a tool and its result are one, and each item keeps its key', () => {
  const items = fold([
    { type: 'run.queued', goal: 'Do it', run: 1 },
    { type: 'run.waiting', why: 'a' },
    { type: 'run.waiting', why: 'b' },
    { type: 'run.started', turn: 1, title: 'Demo', version: '1', prompt: '', sandbox: 's' },
    { type: 'tool.started', id: '1', tool: 'Read', action: read('a') },
    { type: 'tool.started', id: '2', tool: 'Read', action: read('b') },
    { type: 'tool.finished', id: '1', outcome: 'done' },
    { type: 'tool.finished', id: '2', outcome: 'failed', output: 'no' },
    { type: 'tool.started', id: '3', tool: 'Shell', action: { kind: 'command', command: 'npm test' } },
    { type: 'network.denied', host: 'a.test', port: 443, reason: 'no rule' },
    { type: 'network.denied', host: 'a.test', port: 443, reason: 'no rule' },
    { type: 'tool.finished', id: '3', outcome: 'failed', exitCode: 2, output: 'x', durationMs: 41_000 },
    { type: 'something.new' },
    { type: 'run.ended', state: 'failed', reason: 'why' },
  ]);
  expect(items.map(({ kind, key }) => [kind, key])).toEqual([
    ['goal', 1],
    ['prepare', 1.25],
    ['started', 4],
    ['explore', 5],
    ['command', 9],
    ['network', 10],
    ['ended', 14],
  ]);
  expect(items[1]).toMatchObject({ steps: [{ text: 'Queued' }, { text: 'Waiting: b' }], failed: false });
  expect(items[3]).toMatchObject({
    tools: [{ end: { outcome: 'done' } }, { end: { outcome: 'failed', output: 'no' } }],
  });
  expect(items[4]).toMatchObject({ tool: { end: { exitCode: 2, tookMs: 41_000 } } });
  expect(items[5]).toMatchObject({ tries: 2, asked: false });
  expect(items.filter((item) => passes('errors', item)).map(({ kind }) => kind)).toEqual(['command', 'ended']);
});

test('seeding a service while the agent runs is not a preparation step', () => {
  const seeding = { type: 'service.seeding', service: 'db', kind: 'postgres' };
  const started = { type: 'run.started', turn: 1, title: 'Demo', version: '', prompt: '', sandbox: '' };
  const kinds = (events: Record<string, unknown>[]): string[] => fold(events).map(({ kind }) => kind);
  expect(kinds([{ type: 'run.queued', goal: '' }, seeding, started])).toEqual(['prepare', 'started']);
  expect(kinds([{ type: 'run.queued', goal: '' }, started, seeding])).toEqual(['prepare', 'started', 'note']);
});

test('a question is open until the user sends a message', () => {
  const asked = [{ type: 'agent.asked', question: 'Which?', choices: ['a', 'b'] }];
  expect(fold(asked)[0]).toMatchObject({ open: true, choices: ['a', 'b'] });
  expect(fold([...asked, { type: 'message.sent', text: 'a' }])[0]).toMatchObject({ open: false });
});

test('lines and Markdown lists become goals, and files that several goals mention are found', () => {
  expect(goalsOf('- one\n * [ ] two\n\n3. three in src/a.ts\n4) four in src/a.ts\n-five')).toEqual([
    'one',
    'two',
    'three in src/a.ts',
    'four in src/a.ts',
    '-five',
  ]);
  expect(sharedFiles(['three in src/a.ts', 'four in src/a.ts', 'b.ts'])).toEqual(['src/a.ts']);
});

test('tasks that need the user come first, and attempts are grouped with the most urgent one', () => {
  const task = (id: string, group: ApiTask['group'], startedAtMs: number, attemptOf: string | null = null) =>
    ({
      id,
      name: id,
      group,
      startedAtMs,
      attemptOf,
      state: 'ready',
      agent: 'demo',
      blockedHosts: [],
      checks: null,
    }) as unknown as ApiTask;
  const tasks = [
    task('old', 'rest', 1),
    task('a-2', 'running', 5, 'a-1'),
    task('a-1', 'needs-you', 5, 'a-1'),
    task('new', 'rest', 9),
    task('run', 'running', 3),
  ];
  const keys = (open: readonly string[]) => linesOf(tasks, new Set(open)).map(({ key }) => key);
  expect(keys([])).toEqual(['title needs-you', 'attempts a-1', 'title running', 'run', 'title rest', 'new', 'old']);
  expect(keys(['attempts a-1']).slice(0, 4)).toEqual(['title needs-you', 'attempts a-1', 'a-1', 'a-2']);
  const { words, fits } = parseSearch('is:ready agent:dem date tests');
  expect([words, fits(task('x', 'look', 1))]).toEqual(['date tests', true]);
});

test('a task that already waits for an answer when the page first hears of it is announced; the first list is not', () => {
  const task = (id: string, state: string, group: string) =>
    ({ id, state, group, kind: 'agent' }) as unknown as ApiTask;
  const tasks = [task('asks', 'needs-you', 'needs-you'), task('works', 'running', 'running')];
  const announced = (before: Record<string, string> | null) =>
    tasksToAnnounce(before === null ? null : new Map(Object.entries(before)), tasks).map(({ id }) => id);
  expect(announced(null)).toEqual([]);
  expect(announced({})).toEqual(['asks']);
  expect(announced({ asks: 'running', works: 'queued' })).toEqual(['asks']);
  expect(announced({ asks: 'needs-you', works: 'running' })).toEqual([]);
});

test('A123: only a part of ten million characters is shown, with or without line breaks', () => {
  const [lines, line] = [clean('ab\n'.repeat(3_500_000)), clean('x'.repeat(10_500_000))];
  for (const shown of [lines, line]) {
    expect(shown.length).toBeLessThan(500_000);
    expect(shown).toMatch(/\n\[10100000 more characters cut\]$/);
  }
  expect(line.length).toBeLessThan(10_000);
  expect(cleanLine('\u001b'.repeat(1000), 100)).toBe(`${'\\x1b'.repeat(100)}…`);
});
