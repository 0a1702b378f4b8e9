// test/agent-run/waiting.test.ts: a run's work is counted apart from its waiting, and a long wait does not fill the log.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { waitForTurn } from '../../src/agent-run/queue.ts';
import { createRunRecord } from '../../src/agent-run/run-record.ts';
import { firstRun } from '../../src/agent-run/start.ts';
import { createAttention } from '../../src/agent-run/watch-agent.ts';
import { sumsAt, timeOf } from '../../src/protocol/run-time.ts';
import type { RunFile } from '../../src/protocol/task.ts';
import type { HostContext } from '../../src/run/host-context.ts';
import { openEvents } from '../../src/store/events.ts';
import { beginTask, createTask, writeRun } from '../../src/store/tasks.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ags-waiting-'));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(dir, { recursive: true });
});

test('work counts apart from the queue and from waiting for the user, and a pause between turns as neither', () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const at = (seconds: number): void => void vi.setSystemTime(seconds * 1000);
  at(100);
  const paths = beginTask(dir);
  const events = openEvents(paths.events, 'x', () => new Date());
  const record = createRunRecord({ paths, run: firstRun('0'.repeat(40), 100_000, 1) } as never, events);
  const attention = createAttention(record, 'x');
  at(110);
  record.move('preparing');
  at(112);
  record.move('running');
  at(120);
  attention.agent({ type: 'agent.asked', question: 'Red or blue?' });
  at(125);
  // Another need does not begin the wait anew.
  attention.network(['a.test']);
  at(150);
  attention.network([]);
  attention.agent({ type: 'agent.said', text: 'Blue.' });
  at(152);
  // The agent goes on while a service is down.
  attention.service('The database has ended.');
  expect(sumsAt(timeOf(record.now), 155_000)).toEqual({ workMs: 15_000, queueMs: 10_000, userMs: 30_000 });
  at(155);
  record.end('ready', { exitCode: 0 });
  expect(sumsAt(timeOf(record.now), 9_000_000)).toEqual({ workMs: 15_000, queueMs: 10_000, userMs: 30_000 });
});

test('the log names each kind of reason to wait once, and the run always the present one', async () => {
  const base = '0'.repeat(40);
  const made = ['first', 'second', 'third', 'last'].map((id, i) => {
    const goal = { text: id, agent: 'demo', interactive: false, base, baseRef: null, flags: {}, parallel: 1 };
    const limits = { maxSeconds: null, maxCostMicros: null, maxTurns: null, maxTokens: null };
    const one = { id, name: id, kind: 'agent' as const, goal: { ...goal, ...limits }, project: dir, git: true };
    const task = { version: 1 as const, ...one, command: ['demo'], createdAt: new Date(0).toISOString() };
    return createTask(
      dir,
      () => id,
      () => ({ task, run: firstRun(base, i, 1) }),
    );
  });
  const change = (i: number, more: Partial<RunFile>): void => {
    const { paths, run } = made[i] ?? expect.unreachable();
    writeRun(paths, { ...run, ...more });
  };
  const seen: [string, boolean][] = [];
  const over = new AbortController();
  await waitForTurn({
    context: { stateDir: dir } as HostContext,
    id: 'last',
    parallel: 1,
    maxLoad: Number.POSITIVE_INFINITY,
    usedUp: () => Promise.resolve(null),
    admit: () => undefined,
    signal: over.signal,
    onWait(why, isNew) {
      seen.push([why, isNew]);
      // The queue moves whenever it is looked at.
      if (seen.length <= 3) change(seen.length - 1, { state: 'running' });
      else for (const i of [0, 1, 2]) change(i, { state: 'ready' });
      if (seen.length > 1) change(seen.length - 2, { state: 'ready' });
    },
  });
  expect(seen).toEqual([
    ['0 of 1 slots used, 3 tasks ahead', true],
    ['1 of 1 slots used, 2 tasks ahead', false],
    ['1 of 1 slots used, 1 task ahead', false],
    ['1 of 1 slots used', false],
  ]);
});
