// gateway/limits.ts: how much of the network one run may use.
// Invariant: counters only grow, except that a closed connection is no longer counted as open.
import type { NetworkLimits } from '../protocol/network.ts';

export interface Budget {
  readonly open: number;
  readonly bytesOut: number;
  /** null: the connection was counted as open. Otherwise the reason; `first` is set the first time this limit refuses. */
  admit(nowMs: number): Refusal | null;
  release(): void;
  /** False: the byte limit is reached. */
  spend(bytes: number): boolean;
  /** The reason if the byte limit is reached. */
  spent(): Refusal | null;
}

export interface Refusal {
  readonly limit: 'connections' | 'perSecond' | 'bytesOut';
  readonly reason: string;
  readonly first: boolean;
}

/** Twice a second's allowance may come at once: tools start with a burst. */
const BURST = 2;

export function createBudget(limits: NetworkLimits): Budget {
  let open = 0;
  let bytesOut = 0;
  let tokens = limits.perSecond * BURST;
  let filledMs = 0;
  const reported = new Set<string>();
  const refuse = (limit: Refusal['limit'], reason: string): Refusal => {
    const first = !reported.has(limit);
    reported.add(limit);
    return { limit, reason, first };
  };
  const spent = (): Refusal | null =>
    limits.bytesOut !== null && bytesOut > limits.bytesOut
      ? refuse('bytesOut', `the ${limits.bytesOut} bytes that this run may send are spent (network.limits.bytesOut)`)
      : null;
  return {
    get open() {
      return open;
    },
    get bytesOut() {
      return bytesOut;
    },
    admit(nowMs) {
      const exhausted = spent();
      if (exhausted !== null) return exhausted;
      if (open >= limits.connections)
        return refuse(
          'connections',
          `${limits.connections} connections are open, no more are allowed (network.limits.connections)`,
        );
      // A clock that is set back must not remove tokens.
      const passedMs = Math.max(0, nowMs - filledMs);
      tokens = Math.min(limits.perSecond * BURST, tokens + (passedMs / 1000) * limits.perSecond);
      filledMs = nowMs;
      if (tokens < 1)
        return refuse(
          'perSecond',
          `more than ${limits.perSecond} connections in a second are not allowed (network.limits.perSecond)`,
        );
      tokens--;
      open++;
      return null;
    },
    release: () => void open--,
    spend(bytes) {
      bytesOut += bytes;
      return limits.bytesOut === null || bytesOut <= limits.bytesOut;
    },
    spent,
  };
}
