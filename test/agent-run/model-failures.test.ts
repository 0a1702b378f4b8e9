// test/agent-run/model-failures.test.ts: a model that refuses for now is told of, needs the user after a while, and is outlasted.
// needs: sandbox
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createModelFailures } from '../../src/agent-run/model/failures.ts';
import { clockOf, createModelWaits } from '../../src/agent-run/model/waits.ts';
import { whyWait } from '../../src/agent-run/queue.ts';
import { USUAL } from '../harness.ts';
import { createMeteredMachine } from './metered.ts';

test('failures are told ever less often; the user is needed after a while, until the model answers', async () => {
  const told: string[] = [];
  const needs: (string | null)[] = [];
  let atMs = 0;
  const failures = createModelFailures({
    emit: (event) => void (event.type === 'model.failed' && told.push(event.why)),
    need: (why) => void needs.push(why),
    nowMs: () => atMs,
    patienceMs: 20,
  });
  for (let i = 0; i < 500; i++, atMs += 4000) failures.failed(429, i === 0 ? 4 : null);
  expect(told.slice(0, 3)).toEqual([
    'The model answered 429 (too many requests), asked again in 4 s.',
    'The model answered 429 (too many requests), asked again after 4 s (2 times in a row).',
    'The model answered 429 (too many requests), asked again after 4 s (4 times in a row).',
  ]);
  expect(told.length).toBeLessThan(20);
  await expect.poll(() => needs.length).toBe(1);
  expect(failures.now).toEqual({ status: 429, againAtMs: null });
  failures.over();
  expect([needs.length, needs[1], failures.now]).toEqual([2, null, null]);
  failures.failed(null, null);
  failures.over();
  await sleep(40);
  expect(needs.filter((why) => why !== null)).toHaveLength(1);
});

test('a wait ends when the model said, or grows up to an hour, and not for ever', () => {
  const waits = createModelWaits(
    () => 1000,
    () => 0,
  );
  expect(waits.next(429, 61_000)).toBe(61_000);
  expect(waits.next(400, null)).toBe(null);
  waits.renew();
  const grown = Array.from({ length: 26 }, () => waits.next(529, null));
  expect(grown.slice(0, 3)).toEqual([61_000, 121_000, 241_000]);
  expect(grown.slice(22)).toEqual([3_601_000, 3_601_000, null, null]);
  waits.renew();
  // A model that fails is asked for an hour.
  expect(Array.from({ length: 7 }, () => waits.next(500, null)).slice(4)).toEqual([961_000, 1_921_000, null]);
  expect(waits.next(null, null)).toBe(null);
  const noon = new Date(2026, 2, 4, 12, 5).getTime();
  expect([clockOf(noon, noon), clockOf(noon, noon - 86_400_000)]).toEqual(['12:05', '2026-03-04 12:05']);
});

test('a run that waits for its model holds up no other', () => {
  const lacks = { always: () => null, beside: () => null };
  const waiting = { id: 'old', state: 'queued', startedAtMs: 1, waitsUntilMs: 99 } as const;
  const young = { id: 'young', state: 'queued', startedAtMs: 2 } as const;
  const needy = { id: 'needy', state: 'needs-you', needs: 'model', startedAtMs: 0 } as const;
  expect(whyWait('young', 1, [waiting, needy, young], lacks)).toBe(null);
});

test('a task whose agent gave up at a rate limit goes on by itself, and its log tells why it waited', async () => {
  const busy = { fail: { status: 429, message: 'busy', retryAfter: 1 } };
  await using place = await createMeteredMachine(USUAL[0] ?? 'user', { scenario: [busy, { say: 'Go on.' }] });
  const { machine, model } = place;
  const { code } = await place.ags('start', 'later', 'ask', '-a', 'sh ask.sh 1 once');
  expect([code, machine.run('later').state, model.requests.length]).toEqual([0, 'no-changes', 2]);
  const seen = machine.events('later').map(({ type, why, state }) => [type, why ?? state].join(' '));
  expect(seen).toEqual(
    expect.arrayContaining([
      'model.failed The model answered 429 (too many requests), asked again in 1 s.',
      'turn.ended failed',
      'run.moved queued',
      expect.stringMatching(/^run\.waiting the model refuses for now; it goes on by itself at \d\d:\d\d$/),
      'run.moved running',
      'run.ended no-changes',
    ]),
  );
  expect(seen).not.toContain('agent.printed ');
  expect(machine.run('later')).not.toHaveProperty('waitsUntilMs');
});

test('a task whose agent gave up because its model failed goes on by itself too', async () => {
  const broken = { fail: { status: 500, message: 'oops', retryAfter: 1 } };
  await using place = await createMeteredMachine(USUAL[0] ?? 'user', { scenario: [broken, { say: 'Go on.' }] });
  const { machine } = place;
  expect((await place.ags('start', 'soon', 'ask', '-a', 'sh ask.sh 1 once')).code).toBe(0);
  expect(machine.run('soon').state).toBe('no-changes');
  expect(machine.events('soon').find(({ type }) => type === 'run.waiting')).toMatchObject({
    why: expect.stringMatching(/^the model fails for now; it goes on by itself at \d\d:\d\d$/) as string,
  });
});

test('a task that waits for its model can be stopped, and survives the death of its runner', async () => {
  const busy = { fail: { status: 429, message: 'busy', retryAfter: 3600 } };
  await using place = await createMeteredMachine(USUAL[0] ?? 'user', { scenario: [busy] });
  const { machine, model } = place;
  await place.ags('start', 'long', 'ask', '-a', 'sh ask.sh 1 once', '-d');
  await machine.event('long', 'run.waiting', ({ why }) => /refuses/.test(String(why)));
  expect((await place.ags('list')).stdout).toMatch(
    /long +queued[^]*the model refuses for now; it goes on by itself at/,
  );
  process.kill(machine.run('long').runner.pid, 'SIGKILL');
  await expect.poll(async () => (await place.ags('list')).stdout).toMatch(/long +interrupted/);
  expect(model.requests).toHaveLength(1);

  await place.ags('start', 'halt', 'ask', '-a', 'sh ask.sh 1 once', '-d');
  await machine.event('halt', 'run.waiting', ({ why }) => /refuses/.test(String(why)));
  await place.ags('stop', 'halt');
  expect(await machine.until('halt', ['stopped', 'failed'])).toMatchObject({ state: 'stopped' });
});
