// gateway/names.ts: answers what programs inside ask the name service. Pure; no question ever leaves.
// Invariant: a name that may not be reached does not exist, and one that may has an address that means nothing outside.
export interface Names {
  /** Null: no answer at all. */
  answer(packet: Buffer): Buffer | null;
  /** Which name was given this address. */
  nameOf(address: string): string | undefined;
  /** Null: the name may not be reached, or there are too many. */
  addressOf(host: string): string | null;
}

export function createNames(_input: {
  readonly allowed: (host: string) => boolean;
  /** The names of tcp grants and their addresses inside. */
  readonly fixed: ReadonlyMap<string, string>;
}): Names {
  throw new Error('not yet');
}
