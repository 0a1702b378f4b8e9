// bench/trend.mjs: does it grow? The slope through many samples that hardly minds those that are far off.

/**
 * By how much the values of these samples grow from the first to the last of them: the median of the slopes between any two (Theil and Sen),
 * times the time. A few samples far off, or noise around a level, do not move it.
 * @param {{ at: number, value: number }[]} samples in order
 */
export function growth(samples) {
  const slopes = samples.flatMap((one, i) =>
    samples
      .slice(i + 1)
      .flatMap((other) => (other.at > one.at ? [(other.value - one.value) / (other.at - one.at)] : [])),
  );
  if (slopes.length === 0) return 0;
  return median(slopes) * ((samples.at(-1)?.at ?? 0) - (samples[0]?.at ?? 0));
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted.length === 0 ? 0 : (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

/** The later half: by then caches are filled, and whatever still grows grows for ever. */
export const laterHalf = (samples) => samples.slice(Math.floor(samples.length / 2));
