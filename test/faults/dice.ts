// test/faults/dice.ts: pseudorandom choices, reproducible from a seed.
import { createHash } from 'node:crypto';

export interface Dice {
  /** In [0, 1). */
  share(): number;
  pick<T>(from: readonly T[]): T;
}

export function createDice(seed: string): Dice {
  let state = createHash('sha256').update(seed).digest().readUInt32LE(0);
  // mulberry32: short, and sufficient here.
  const share = (): number => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    share,
    pick(from) {
      const one = from[Math.floor(share() * from.length)];
      if (one === undefined) throw new Error('the list is empty');
      return one;
    },
  };
}
