// bench/gateway/rounds.mjs: measures variants in turn, each round in another order: `interleave` of bench/measure.mjs for asynchronous
// measurements.

/** Returns each variant's results by round. */
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
