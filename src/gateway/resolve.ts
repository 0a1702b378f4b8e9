// gateway/resolve.ts: which addresses does a name lead to?
// Invariant: one question at a time for a name, a bounded memory of answers, and a dead server holds up nobody else.
export type Resolved =
  | { readonly kind: 'found'; readonly addresses: readonly string[] }
  /** A sentence part: "it does not exist". */
  | { readonly kind: 'failed'; readonly reason: string; readonly timedOut: boolean };

export interface Resolver {
  /** `exact`: a rule names the host in full, so that asking for it tells nobody anything; others are limited in rate. */
  resolve(host: string, options?: { readonly exact?: boolean }): Promise<Resolved>;
  close(): void;
}

export function createResolver(_input: {
  /** "127.0.0.1:53"; empty: those of this machine. */
  readonly servers: readonly string[];
  readonly hostsFile?: string;
  readonly timeoutMs?: number;
  readonly tries?: number;
  /** Questions in a second about names that no rule names in full. */
  readonly perSecond?: number;
  readonly now?: () => number;
}): Resolver {
  throw new Error('not yet');
}
