// gateway/intercept/redact.ts: replaces secret values in a byte stream with as many stars.
// Invariant: no value passes whole, however it is split into chunks. Only the possible beginning of a value is held back, so
// server-sent events are not delayed.

export interface Redactor {
  pass(chunk: Buffer): Buffer;
  /** Returns the held bytes. The stream may go on afterwards. */
  end(): Buffer;
}

const EMPTY = Buffer.alloc(0);
const STAR = 42;

export function createRedactor(values: readonly Buffer[]): Redactor {
  const wanted = values.filter((value) => value.length > 0);
  let held = EMPTY;
  /** How many bytes at the beginning of `held` belong to a value that began before them. */
  let covered = 0;

  function pass(chunk: Buffer): Buffer {
    const data = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    const keep = heldLength(data, wanted);
    return cut(data, data.length - keep);
  }

  function cut(data: Buffer, length: number): Buffer {
    const { masked, reach } = mask(data, wanted, covered);
    held = length === data.length ? EMPTY : Buffer.from(data.subarray(length));
    covered = Math.max(0, reach - length);
    return masked.subarray(0, length);
  }

  return { pass, end: () => cut(held, held.length) };
}

/** A copy with stars, made only if there is something to hide; `reach`: the end of the last hidden value. */
function mask(data: Buffer, values: readonly Buffer[], covered: number): { masked: Buffer; reach: number } {
  let masked = data;
  let reach = covered;
  if (covered > 0) masked = Buffer.from(data).fill(STAR, 0, covered);
  for (const value of values) {
    // Values may overlap, so each is searched for in the original data, not in the masked copy.
    for (let at = data.indexOf(value); at !== -1; at = data.indexOf(value, at + 1)) {
      if (masked === data) masked = Buffer.from(data);
      masked.fill(STAR, at, at + value.length);
      reach = Math.max(reach, at + value.length);
    }
  }
  return { masked, reach };
}

/** The length of the longest suffix of `data` that is a prefix of a value. */
function heldLength(data: Buffer, values: readonly Buffer[]): number {
  let longest = 0;
  for (const value of values) {
    const first = value[0] ?? 0;
    let at = data.indexOf(first, Math.max(0, data.length - value.length + 1));
    while (at !== -1 && data.length - at > longest) {
      if (value.subarray(0, data.length - at).equals(data.subarray(at))) longest = data.length - at;
      at = data.indexOf(first, at + 1);
    }
  }
  return longest;
}
