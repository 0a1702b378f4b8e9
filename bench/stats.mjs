// bench/stats.mjs: medians with their spread, and ratios by round.

/** @returns {{ median: number, p10: number, p90: number, n: number }} */
export function summary(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share) => {
    const place = share * (sorted.length - 1);
    const below = sorted[Math.floor(place)];
    return below + (sorted[Math.ceil(place)] - below) * (place % 1);
  };
  return { median: at(0.5), p10: at(0.1), p90: at(0.9), n: sorted.length };
}

export const wall = (runs) => runs.map((run) => run.wallMs);
export const cpu = (runs) => runs.map((run) => run.cpuMs);
export const MEASURES = [
  { what: 'wall time', get: wall },
  { what: 'processor time', get: cpu },
];

/** Ratios within a round, so that temporary load cancels out. */
export function ratio(ours, ...theirs) {
  return summary(ours.map((value, i) => value / theirs.reduce((sum, list) => sum + list[i], 0)));
}

/** The ratio of medians, for variants that are not measured in the same rounds. */
export const medianRatio = (theirs, ours, get = wall) => summary(get(theirs)).median / summary(get(ours)).median;

export function difference(more, less) {
  return summary(more.map((value, i) => value - less[i]));
}

/** 12.3 (10.0-15.1) */
export function spread(s, unit = '') {
  const end = unit === '' ? '' : ` ${unit}`;
  return s.n < 3 ? `${number(s.median)}${end}` : `${number(s.median)}${end} (${number(s.p10)}–${number(s.p90)})`;
}

export const ms = (values) => spread(summary(values), 'ms');

export const count = (value) => Math.round(value).toLocaleString('en').replaceAll(',', ' ');

export function number(value) {
  const size = Math.abs(value);
  if (size >= 10_000) return count(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}
