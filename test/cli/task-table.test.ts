// test/cli/task-table.test.ts: tasks as text fit the terminal, and name the next commands.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createPaint } from '../../src/cli/terminal/colour.ts';
import { widthOf } from '../../src/cli/terminal/format.ts';
import { nextSteps } from '../../src/cli/terminal/next-steps.ts';
import { taskTable } from '../../src/cli/terminal/task-table.ts';
import type { Context } from '../../src/cli/verb.ts';
import { STATE_WORDS } from '../../src/protocol/run-state.ts';
import type { TaskRow } from '../../src/queries/list.ts';
import type { StoredTask } from '../../src/store/tasks.ts';

const row = (more: Partial<TaskRow>): TaskRow => ({
  name: 'dates',
  state: 'ready',
  reason: null,
  project: '/work/shop',
  command: ['claude'],
  startedAtMs: 1,
  endedAtMs: null,
  exitCode: null,
  label: null,
  changed: true,
  changes: { files: 3, risky: 1 },
  live: false,
  needsReview: true,
  goal: 'Make the date tests pass',
  agent: 'claude',
  costMicros: null,
  doing: null,
  time: { workMs: 61_000, queueMs: 0, userMs: 0, phase: null, sinceMs: 0 },
  checks: null,
  attacked: null,
  ...more,
});

const ROWS = [
  row({ name: 'index-the-help-pages-and-the-menu-1', goal: 'x'.repeat(2 ** 21), agent: 'claude' }),
  row({ name: 'index-the-help-pages-and-the-menu-2', goal: '数据库 の 修正 🎉 '.repeat(40), costMicros: 12_340_000 }),
  row({
    goal: '\u001b[2J\u001b]0;title\u0007 \u202Egoal\u0000',
    reason: `\u001b[31m${'why '.repeat(100)}`,
    state: 'failed',
  }),
  row({
    name: 'npm',
    goal: null,
    command: ['sh', '-c', 'echo \u001b[1m\n'.repeat(50)],
    project: `/${'p'.repeat(200)}`,
  }),
];

const shown = (columns: number | null): string[] => {
  const stdout = columns === null ? { isTTY: false } : { isTTY: true, columns };
  const ctx = { stdout, now: () => new Date(60_000) } as unknown as Context;
  return taskTable(ROWS, true, createPaint(false), ctx).trimEnd().split('\n');
};

test.each([
  [40, 40],
  [80, 80],
  [120, 120],
  [null, 160],
  // A terminal that does not know its size.
  [0, 160],
])('a list for %s columns fits, and shows no control character of goals, names or reasons', (columns, most) => {
  const lines = shown(columns);
  expect(lines.filter((line) => widthOf(line) > most)).toEqual([]);
  // eslint-disable-next-line no-control-regex
  expect(lines.filter((line) => /[\u0000-\u001f\u007f\u202e]/u.test(line))).toEqual([]);
  expect(lines.join('\n')).toContain('\\x1b[2J\\x1b]0;title\\x07');
});

test('a narrow list keeps apart names that differ at their end', () => {
  const names = shown(40).flatMap((line) => /^ind\S+/.exec(line)?.[0] ?? []);
  expect(names.map((name) => name.slice(-2))).toEqual(['-1', '-2']);
});

test('the documentation explains the word of each state', () => {
  const page = readFileSync(new URL('../../docs/start/tasks.md', import.meta.url), 'utf8');
  const table = page.slice(page.indexOf('| word | meaning |'), page.indexOf('\n\nEach run has'));
  const words = [...table.matchAll(/^\| ([a-z ,]+) \|/gm)].slice(1).flatMap(([, list]) => list?.split(', '));
  expect(new Set(words)).toEqual(new Set(Object.values(STATE_WORDS)));
});

const GOAL = { text: '', agent: 'claude', interactive: false };
const DONE = { turns: 1, fetched: true, result: { files: 1 } };
test.each([
  ['ready', GOAL, { state: 'ready', ...DONE }, 'ags diff x · ags merge x · ags send x "<message>"'],
  ['ready, of a custom command', { ...GOAL, command: ['sh'] }, { state: 'ready', ...DONE }, 'ags diff x · ags merge x'],
  ['failed', GOAL, { state: 'failed', ...DONE }, 'ags diff x · ags logs x · ags continue x · ags restart x'],
  ['stopped without work', GOAL, { state: 'stopped', ...DONE, result: null }, 'ags continue x · ags restart x'],
  ['stopped in the queue', { ...GOAL, command: ['sh'] }, { state: 'stopped' }, 'ags continue x · ags restart x'],
  ['killed', GOAL, { state: 'running', turns: 1, fetched: false }, 'ags diff x · ags continue x · ags restart x'],
  ['killed in the queue', GOAL, { state: 'queued' }, 'ags continue x · ags restart x'],
  ['without changes', GOAL, { state: 'no-changes', ...DONE, result: null }, 'ags send x "<message>" · ags restart x'],
  ['running', GOAL, { state: 'running', live: true }, 'ags logs -f x · ags stop x'],
  [
    'waiting for an answer',
    GOAL,
    { state: 'needs-you', needs: 'answer', live: true },
    'ags send x "<answer>" · ags logs -f x · ags stop x',
  ],
  ['a command with changes', undefined, { state: 'ready' }, 'ags diff x · ags review x'],
])('next for a task that is %s', (_what, goal, { live = false, ...run }: { live?: boolean; state: string }, steps) => {
  const stored = { task: { name: 'x', goal }, run, live } as unknown as StoredTask;
  expect(nextSteps(stored)).toBe(`ags: next: ${steps}\n`);
});

test('nothing comes next for a merged task', () => {
  const stored = { task: { name: 'x', goal: GOAL }, run: { state: 'merged', ...DONE }, live: false };
  expect(nextSteps(stored as unknown as StoredTask)).toBe('');
});
