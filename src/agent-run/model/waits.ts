// agent-run/model/waits.ts: how long a task waits whose agent has given up because its model refuses for now (a rate limit, the window
// of a subscription, an overload), or fails.
import { pause } from '../../lib/process/pause.ts';

/** It says that asking later helps. */
const REFUSES: readonly (number | null)[] = [429, 503, 529];

/** Asking later may help. */
export function failsFor(status: number | null): boolean {
  return status !== null && status >= 500 && !REFUSES.includes(status);
}

export interface ModelWaits {
  /** When to go on; null: not at all. `againAtMs`: when the model can be asked again, if it said so. */
  next(status: number | null, againAtMs: number | null): number | null;
  /** The model answered in between. */
  renew(): void;
}

const FIRST_MS = 60_000;
const LONGEST_MS = 3_600_000;
/** In a row, if the model does not say when. */
const MOST = 24;
/** An hour and three minutes. A request that makes its model fail each time does so later too. */
const MOST_FAILED = 6;
/** A day has at most a few windows. */
const MOST_TOLD = 100;

export function createModelWaits(nowMs: () => number, random: () => number = Math.random): ModelWaits {
  let times = 0;
  return {
    next(status, againAtMs) {
      const fails = failsFor(status);
      if (!fails && !REFUSES.includes(status)) return null;
      if ((times += 1) > (fails ? MOST_FAILED : againAtMs === null ? MOST : MOST_TOLD)) return null;
      const waitMs =
        againAtMs === null ? Math.min(LONGEST_MS, FIRST_MS * 2 ** (times - 1)) : Math.max(0, againAtMs - nowMs());
      // Many tasks may wait for the same moment.
      return nowMs() + waitMs + Math.round(random() * Math.min(30_000, waitMs / 10));
    },
    renew: () => void (times = 0),
  };
}

/** By the clock, also if the machine sleeps meanwhile. */
export async function waitUntil(untilMs: number, nowMs: () => number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && nowMs() < untilMs) await pause(Math.min(SLICE_MS, untilMs - nowMs()), signal);
}

const SLICE_MS = 30_000;

/** "14:05", or with the day if it is another one. */
export function clockOf(atMs: number, nowMs: number): string {
  const [at, now] = [new Date(atMs), new Date(nowMs)];
  const two = (number: number): string => String(number).padStart(2, '0');
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return at.toDateString() === now.toDateString() ? time : `${day} ${time}`;
}
