// test/agent-run/prompt-watch.test.ts: when an agent at a terminal counts as waiting at its prompt.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createPromptWatch, QUIET_MS, type PromptWatch } from '../../src/agent-run/prompt-watch.ts';

let watch: PromptWatch;
let told: boolean[] = [];
/** As an agent at work does, for so long. */
const work = (ms: number): void => {
  for (let passed = 0; passed < ms; passed += 100) {
    watch.drew();
    vi.advanceTimersByTime(100);
  }
};

beforeEach(() => {
  vi.useFakeTimers();
  told = [];
  watch = createPromptWatch((waiting) => told.push(waiting));
});
afterEach(() => {
  watch.close();
  vi.useRealTimers();
});

test('a slow start and work are no prompt, a still screen is one', () => {
  vi.advanceTimersByTime(60_000);
  work(200);
  vi.advanceTimersByTime(19_000);
  work(60_000);
  expect(told).toEqual([]);
  vi.advanceTimersByTime(QUIET_MS);
  expect(told).toEqual([true]);
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual([true]);
});

test('a line that is entered ends the wait; keys, their echo and a redrawn window do not', () => {
  work(1500);
  vi.advanceTimersByTime(QUIET_MS);
  for (let keys = 0; keys < 50; keys++) {
    watch.typed(Buffer.from('x'));
    work(200);
  }
  watch.resized();
  work(900);
  expect(told).toEqual([true]);
  watch.typed(Buffer.from('\r'));
  expect(told).toEqual([true, false]);
  work(5000);
  vi.advanceTimersByTime(QUIET_MS);
  expect(told).toEqual([true, false, true]);
});

test('an agent that goes on by itself works; a line that changes now and then is still a prompt', () => {
  work(1500);
  vi.advanceTimersByTime(QUIET_MS);
  for (let minutes = 0; minutes < 5; minutes++) {
    watch.drew();
    vi.advanceTimersByTime(60_000);
  }
  expect(told).toEqual([true]);
  work(2200);
  expect(told).toEqual([true, false]);
});

test('a program that is never seen at work is at its prompt after a while, or soon after a line is entered', () => {
  work(100);
  vi.advanceTimersByTime(20_000);
  expect(told).toEqual([true]);
  const other: boolean[] = [];
  const second = createPromptWatch((waiting) => other.push(waiting));
  second.drew();
  second.typed(Buffer.from('\r'));
  vi.advanceTimersByTime(QUIET_MS);
  expect(other).toEqual([true]);
  second.close();
});

test('an agent whose requests are seen is not at its prompt before the first, or while one is under way', () => {
  let asks = { open: 0, any: false };
  const seen: boolean[] = [];
  watch.close();
  watch = createPromptWatch(
    (waiting) => seen.push(waiting),
    () => asks,
  );
  // It loads: a picture moves, and then stops.
  work(1500);
  vi.advanceTimersByTime(19_000);
  asks = { open: 1, any: true };
  work(1500);
  vi.advanceTimersByTime(600_000);
  expect(seen).toEqual([]);
  asks = { open: 0, any: true };
  work(1500);
  vi.advanceTimersByTime(QUIET_MS);
  expect(seen).toEqual([true]);
});

test('the end of the program ends the watch', () => {
  work(1500);
  watch.close();
  vi.advanceTimersByTime(QUIET_MS);
  watch.drew();
  watch.typed(Buffer.from('\r'));
  vi.advanceTimersByTime(QUIET_MS);
  expect(told).toEqual([]);
});
