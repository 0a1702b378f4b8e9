// agent-run/model/failures.ts: what to tell of a model that answers only failures: to the log, ever less often, and to the user after a
// while. One success ends it.
import type { ModelEvent } from '../../protocol/event.ts';

export interface ModelFailures {
  failed(status: number | null, retryAfterSeconds: number | null): void;
  /** It answered, or nobody asks it any more. */
  over(): void;
  /** null: its last answer was none of these. */
  readonly now: { readonly status: number | null; readonly againAtMs: number | null } | null;
}

export interface FailuresInput {
  readonly emit: (event: ModelEvent) => void;
  /** Why the user is needed; null: not any more. */
  readonly need: (why: string | null) => void;
  readonly nowMs: () => number;
  readonly patienceMs?: number;
}

/** Agents ask again by themselves, so a short while needs nobody. */
const PATIENCE_MS = 120_000;
const TELL_MS = 300_000;

export function createModelFailures({ emit, need, nowMs, patienceMs = PATIENCE_MS }: FailuresInput): ModelFailures {
  let times = 0;
  let lastAtMs = 0;
  let toldAtMs = 0;
  let now: ModelFailures['now'] = null;
  let timer: NodeJS.Timeout | undefined;
  return {
    failed(status, retryAfterSeconds) {
      const atMs = nowMs();
      const passed = Math.max(0, Math.round((atMs - lastAtMs) / 1000));
      times += 1;
      lastAtMs = atMs;
      now = { status, againAtMs: retryAfterSeconds === null ? null : atMs + retryAfterSeconds * 1000 };
      const what = `The model ${status === null ? 'does not answer' : `answered ${status}${NAMES[status] ?? ''}`}`;
      timer ??= setTimeout(
        () => need(`${what}, and nothing else for ${Math.round(patienceMs / 60_000)} minutes`),
        patienceMs,
      ).unref();
      const isPowerOfTwo = (times & (times - 1)) === 0;
      if (!isPowerOfTwo && atMs - toldAtMs < TELL_MS) return;
      toldAtMs = atMs;
      const asked =
        times > 1
          ? `, asked again after ${passed} s (${times} times in a row)`
          : retryAfterSeconds === null
            ? ''
            : `, asked again in ${retryAfterSeconds} s`;
      emit({ type: 'model.failed', status, why: `${what}${asked}.` });
    },
    over() {
      if (timer !== undefined) need(null);
      clearTimeout(timer);
      timer = undefined;
      times = 0;
      now = null;
    },
    get now() {
      return now;
    },
  };
}

const NAMES: Readonly<Record<number, string>> = {
  429: ' (too many requests)',
  500: ' (an error of its own)',
  503: ' (unavailable)',
  529: ' (overloaded)',
};
