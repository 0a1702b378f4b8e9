// lib/units.ts: sizes and times as people write them: 512k, 2g, 50%, 90s, 1h30m.
// Invariant: text that is not understood gives `undefined`, never a guess. The caller knows the origin of the text and reports it.

const UNIT_BYTES = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 } as const;
const UNIT_SECONDS = { d: 86_400, h: 3600, m: 60, s: 1 } as const;
/** Larger than any machine; keeps every result a safe integer. */
const MAX = 2 ** 50;

/** Bytes: a number, or one followed by k, m, g or t (powers of 1024; "kb" and "KiB" mean the same). */
export function parseSize(text: string): number | undefined {
  const match = /^(\d{1,16}(?:\.\d{1,6})?)(?:([kmgt])(?:i?b)?)?$/i.exec(text.trim());
  if (!match?.[1]) return undefined;
  const unit = match[2]?.toLowerCase() as keyof typeof UNIT_BYTES | undefined;
  if (unit === undefined && match[1].includes('.')) return undefined;
  return within(Math.round(Number(match[1]) * (unit ? UNIT_BYTES[unit] : 1)));
}

/** A size as above, or a percentage of `totalBytes`, above 0 and up to 100. */
export function parseShare(text: string, totalBytes: number): number | undefined {
  const match = /^(\d{1,3}(?:\.\d{1,3})?)%$/.exec(text.trim());
  if (!match) return parseSize(text);
  const percent = Number(match[1]);
  return percent > 0 && percent <= 100 ? Math.floor((totalBytes * percent) / 100) : undefined;
}

/** Seconds: days, hours, minutes and seconds in that order, each with its letter. A bare number has no unit, so it is refused. */
export function parseDuration(text: string): number | undefined {
  const match = /^(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?$/i.exec(text.trim());
  if (!match || match[0] === '') return undefined;
  const [, d = '0', h = '0', m = '0', s = '0'] = match;
  return within(Number(d) * UNIT_SECONDS.d + Number(h) * UNIT_SECONDS.h + Number(m) * UNIT_SECONDS.m + Number(s));
}

export function parseCount(text: string): number | undefined {
  return /^\d{1,15}$/.test(text.trim()) ? within(Number(text)) : undefined;
}

/** The shortest text that `parseSize` reads back as nearly the same number: 4g, 1.5g, 12.25m. */
export function formatSize(bytes: number): string {
  for (const [letter, unit] of Object.entries(UNIT_BYTES).toReversed()) {
    if (bytes >= unit) return `${Number((bytes / unit).toFixed(2))}${letter}`;
  }
  return String(bytes);
}

/** An amount, as the page writes it: 435 MB, 1.2 GB (powers of 1024). */
export function readableSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  for (; value >= 1000 && unit < UNITS.length - 1; unit += 1) value /= 1024;
  return `${Number(value.toFixed(value >= 100 ? 0 : 1))} ${UNITS[unit]}`;
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

export function formatDuration(seconds: number): string {
  const parts: string[] = [];
  let rest = seconds;
  for (const [letter, unit] of Object.entries(UNIT_SECONDS)) {
    const count = Math.floor(rest / unit);
    if (count > 0) parts.push(`${count}${letter}`);
    rest -= count * unit;
  }
  return parts.join('') || '0s';
}

function within(value: number): number | undefined {
  return value <= MAX ? value : undefined;
}

/** "1 file", "3 files". */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** "$2.50" of millionths of a dollar. */
export function dollars(micros: number): string {
  return `$${(micros / 1e6).toFixed(2)}`;
}
