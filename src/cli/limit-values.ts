// cli/limit-values.ts: values of limits as people write them: 30m, 2.50, 200. `label` names the flag or setting in the error.
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import { parseDuration } from '../lib/units.ts';

/** In seconds. */
export function readDuration(value: string, label: string): number {
  const seconds = parseDuration(value);
  if (seconds !== undefined && seconds > 0) return seconds;
  throw new AgsError('usage.invalid', `${label} is a time such as 30m or 2h, not "${visible(value)}".`);
}

/** In millionths of a dollar. */
export function readDollars(value: string, label: string): number {
  const amount = value.replace('$', '');
  if (/^\$?\d{1,6}(\.\d{1,6})?$/.test(value) && Number(amount) > 0) return Math.round(Number(amount) * 1e6);
  throw new AgsError('usage.invalid', `${label} is an amount in dollars such as 2.50, not "${visible(value)}".`);
}

export function readWhole(value: string, label: string, least: number, most: number): number {
  const number = /^\d{1,6}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw new AgsError('usage.invalid', `${label} is a number from ${least} to ${most}, not "${visible(value)}".`);
}

/** "500000", "500k" or "2m". */
export function readTokens(value: string, label: string): number {
  const [, digits = '', unit = ''] = /^(\d{1,12}(?:\.\d{1,3})?)([km]?)$/i.exec(value) ?? [];
  const number = Math.round(Number(digits) * ({ k: 1e3, m: 1e6 }[unit.toLowerCase()] ?? 1));
  if (digits !== '' && number >= 1 && number <= 1e12) return number;
  throw new AgsError('usage.invalid', `${label} is a number of tokens such as 500000 or 2m, not "${visible(value)}".`);
}
