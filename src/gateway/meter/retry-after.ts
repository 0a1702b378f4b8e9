// gateway/meter/retry-after.ts: when a model that has refused an answer can be asked again, as its answer tells.
import type { Field } from '../intercept/head.ts';
import { firstOf } from '../intercept/request-rewrite.ts';

/** In seconds from now; null: it does not tell. `text`: the beginning of its body. */
export function retryAfterOf(headers: readonly Field[], text: string, nowMs: number): number | null {
  const used = (name: string): boolean => Number(firstOf(headers, name) ?? 0) >= 100;
  const given = [
    secondsOf(firstOf(headers, 'retry-after'), nowMs),
    // The window of a subscription: Claude's by its end, Codex's by its rest.
    firstOf(headers, 'anthropic-ratelimit-unified-status') === 'rejected'
      ? untilOf(firstOf(headers, 'anthropic-ratelimit-unified-reset'), nowMs)
      : null,
    used('x-codex-primary-used-percent')
      ? secondsOf(firstOf(headers, 'x-codex-primary-reset-after-seconds'), nowMs)
      : null,
    secondsOf(/"resets_in_seconds"\s*:\s*(\d{1,7})/.exec(text)?.[1] ?? null, nowMs),
    secondsOf(/"retryDelay"\s*:\s*"(\d{1,7}(?:\.\d{1,9})?)s"/.exec(text)?.[1] ?? null, nowMs),
  ].filter((seconds) => seconds !== null);
  return given.length === 0 ? null : Math.max(...given);
}

/** A longer time is not believed. */
const MOST_SECONDS = 8 * 86_400;

/** A number of seconds, or a date. */
function secondsOf(text: string | null, nowMs: number): number | null {
  if (text === null) return null;
  if (/^\d{1,7}(?:\.\d{1,9})?$/.test(text)) return believed(Number(text));
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : believed((at - nowMs) / 1000);
}

/** Seconds since 1970, or a date. */
function untilOf(text: string | null, nowMs: number): number | null {
  if (text === null) return null;
  const at = /^\d{9,11}$/.test(text) ? Number(text) * 1000 : Date.parse(text);
  return Number.isNaN(at) ? null : believed((at - nowMs) / 1000);
}

function believed(seconds: number): number | null {
  return seconds < 0 || seconds > MOST_SECONDS ? null : Math.ceil(seconds);
}
