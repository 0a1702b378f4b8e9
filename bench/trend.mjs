// bench/trend.mjs: detects growth: a slope through many samples, robust against outliers.

/**
 * The growth from the first to the last sample: the median of the slopes between any two (Theil-Sen), times the duration. Outliers and noise
 * hardly affect it.
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

/** The later half: caches are full by then, so remaining growth is permanent. */
export const laterHalf = (samples) => samples.slice(Math.floor(samples.length / 2));
