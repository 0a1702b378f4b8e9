// test/agent-run/queue.test.ts: the queue's decision under random arrivals, waits, deaths and loads.
import { expect, test } from 'vitest';
import { maxLoadOf, whyWait, type QueuedRun } from '../../src/agent-run/queue.ts';

const PLENTY = { always: () => null, beside: () => null };
const run = (id: string, startedAtMs: number, more: Partial<QueuedRun> = {}): QueuedRun => ({
  id,
  startedAtMs,
  state: 'queued',
  ...more,
});

test('a run that waits for a person gives its place to the next; one that only wants a look keeps it', () => {
  const next = run('b', 2);
  const asks = (needs: 'answer' | 'host' | 'look'): string | null =>
    whyWait('b', 1, [run('a', 1, { state: 'needs-you', needs }), next], PLENTY);
  expect([asks('answer'), asks('host'), asks('look')]).toEqual([null, null, '1 of 1 slots used']);
});

test('a run that waits for another task holds no place: it delays neither younger runs nor the one it waits for', () => {
  const runs = [run('waits', 1, { after: 'young' }), run('young', 2)];
  expect(whyWait('young', 1, runs, PLENTY)).toBeNull();
  // Once that task has ended well, it goes in its own turn.
  expect(whyWait('waits', 1, [run('waits', 1), run('young', 2)], PLENTY)).toBeNull();
});

test('a run that is held back is not overtaken, whatever it is held back by', () => {
  const runs = [run('working', 1, { state: 'running' }), run('old', 2), run('young', 3)];
  const busy = { always: () => null, beside: () => 'the machine is busy' };
  expect(whyWait('old', 4, runs, busy)).toBe('the machine is busy');
  expect(whyWait('young', 4, runs, PLENTY)).toBe('1 of 4 slots used, 1 task ahead');
  // The older one allows itself fewer neighbours than the younger one.
  expect([whyWait('old', 1, runs, PLENTY), whyWait('young', 4, runs, PLENTY)]).toEqual([
    '1 of 1 slots used',
    '1 of 4 slots used, 1 task ahead',
  ]);
});

test('a busy machine runs one at a time, and a full disk none', () => {
  const alone = [run('a', 1), run('b', 2)];
  expect(whyWait('a', 4, alone, { always: () => null, beside: () => 'busy' })).toBeNull();
  expect(whyWait('a', 4, alone, { always: () => 'full', beside: () => null })).toBe('full');
});

test('AGS_MAX_LOAD sets the load above which runs wait, and anything but a number above 0 is ignored', () => {
  const usual = maxLoadOf({});
  expect(usual).toBeGreaterThanOrEqual(3);
  expect(['20', '0.5', '0', '-1', 'much', ''].map((text) => maxLoadOf({ AGS_MAX_LOAD: text }))).toEqual([
    20,
    0.5,
    usual,
    usual,
    usual,
    usual,
  ]);
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'any history keeps the order and the limits, and nobody starves (seed %d)',
  (seed) => {
    const random = randomFrom(seed);
    const chance = (share: number): boolean => random() < share;
    const limits = new Map<string, number>();
    const others = new Map<string, string>();
    const ended = new Set<string>();
    const dead = new Set<string>();
    let runs: QueuedRun[] = [];
    const change = (id: string, state: QueuedRun['state'], needs?: QueuedRun['needs']): void => {
      runs = runs.map((one) =>
        one.id === id ? { id, startedAtMs: one.startedAtMs, state, ...(needs && { needs }) } : one,
      );
    };
    const working = (): number =>
      runs.filter(({ state, needs }) => state === 'running' || (state === 'needs-you' && needs === 'look')).length;
    const step = (now: number, calm: boolean): void => {
      if (!calm && chance(0.3)) {
        const id = `run-${now}-${Math.floor(random() * 100)}`;
        limits.set(id, 1 + Math.floor(random() * 4));
        // Some wait for an older run, which may be queued, at work, ended or dead.
        const other = chance(0.3) ? [...limits.keys()].at(Math.floor(random() * limits.size)) : undefined;
        // Several runs may be created in the same millisecond.
        runs = [...runs, run(id, now - (now % 3), other === undefined || other === id ? {} : { after: other })];
        if (other !== undefined && other !== id) others.set(id, other);
      }
      for (const { id, state } of runs.toSorted(() => random() - 0.5)) {
        const full = !calm && chance(0.2);
        const busy = !calm && chance(0.6);
        const { after } = runs.find((one) => one.id === id) ?? {};
        if (state === 'queued' && after !== undefined) {
          if (ended.has(after)) runs = runs.map((one) => (one.id === id ? run(id, one.startedAtMs) : one));
          else if (dead.has(after)) {
            dead.add(id);
            runs = runs.filter((one) => one.id !== id);
          }
          continue;
        }
        if (state === 'queued') {
          const queue = runs.filter((one) => one.state === 'queued' && one.after === undefined).toSorted(byAge);
          const before = working();
          const parallel = limits.get(id) ?? 1;
          const lacks = { always: () => (full ? 'full' : null), beside: () => (busy ? 'busy' : null) };
          if (whyWait(id, parallel, runs, lacks) !== null) continue;
          expect(queue[0]?.id).toBe(id);
          expect(before).toBeLessThan(parallel);
          const waitedFor = others.get(id);
          if (waitedFor !== undefined) expect(ended).toContain(waitedFor);
          expect(full || (busy && before > 0)).toBe(false);
          change(id, 'running');
          continue;
        }
        const what = random();
        const needs = (['answer', 'host', 'look'] as const)[Math.floor(random() * 3)];
        if (what < 0.1) change(id, 'needs-you', needs);
        else if (what < 0.2) change(id, 'running');
        else if (what < 0.35) {
          // It ends well, or its runner dies and nobody continues it.
          (calm || chance(0.8) ? ended : dead).add(id);
          runs = runs.filter((one) => one.id !== id);
        }
      }
      if (!calm && chance(0.05)) {
        const kept = runs.filter(() => chance(0.8));
        for (const one of runs) if (!kept.includes(one)) dead.add(one.id);
        runs = kept;
      }
    };
    for (let now = 0; now < 400; now++) step(now, false);
    for (let now = 400; now < 2000 && runs.some(({ state }) => state === 'queued'); now++) step(now, true);
    expect(runs.filter(({ state }) => state === 'queued')).toEqual([]);
  },
);

function byAge(a: QueuedRun, b: QueuedRun): number {
  return a.startedAtMs - b.startedAtMs || (a.id < b.id ? -1 : 1);
}

function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}
