// web/src/text/format.ts: formats times, money, sizes and counts.

/** For example 45s, 6m, 1h 20m, 3d. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours}h` : `${hours}h ${minutes % 60}m`;
  return `${Math.floor(hours / 24)}d`;
}

/** More precise than duration(): 0.4s, 41s, 2m 5s. */
export function took(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
}

export function ago(atMs: number, nowMs: number): string {
  const ms = nowMs - atMs;
  return ms < 45_000 ? 'just now' : `${duration(ms)} ago`;
}

export function money(micros: number): string {
  const dollars = micros / 1_000_000;
  return dollars !== 0 && dollars < 0.01 ? '<$0.01' : `$${dollars.toFixed(2)}`;
}

export function tokens(count: number): string {
  if (count < 1000) return `${count} tok`;
  return count < 1_000_000 ? `${Math.round(count / 1000)}k tok` : `${(count / 1_000_000).toFixed(1)}M tok`;
}

export function bytes(count: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${Number(value.toFixed(value >= 100 ? 0 : 1))} ${units[unit]}`;
}

export function clock(atMs: number, withSeconds = false): string {
  const at = new Date(atMs);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${two(at.getHours())}:${two(at.getMinutes())}${withSeconds ? `:${two(at.getSeconds())}` : ''}`;
}

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
