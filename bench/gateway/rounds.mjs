// bench/gateway/rounds.mjs: variants measured in turn, each round in another order. As `interleave` of bench/measure.mjs, for
// measurements that take their time.

/** Returns for each variant its rounds in order: the n-th of one belongs to the n-th of another. */
export async function inTurn(rounds, variants) {
  const names = Object.keys(variants);
  const results = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (let i = 0; i < names.length; i += 1) {
      const name = names[(i + round) % names.length];
      results[name].push(await variants[name]());
    }
    process.stderr.write('.');
  }
  return results;
}

export const mapValues = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]));
