// gateway/limits.ts: how much of the network one run may use up.
// Invariant: what has been counted is never given back, except a connection that has ended.
import type { NetworkLimits } from '../protocol/network.ts';

export interface Budget {
  readonly open: number;
  readonly bytesOut: number;
  /** null: one more connection is open now. Otherwise why not; `first` the first time that this limit says no. */
  admit(nowMs: number): Refusal | null;
  release(): void;
  /** False: nothing more may leave. */
  spend(bytes: number): boolean;
  /** Why nothing more may leave, or null. */
  spent(): Refusal | null;
}

export interface Refusal {
  readonly limit: 'connections' | 'perSecond' | 'bytesOut';
  readonly reason: string;
  readonly first: boolean;
}

/** A second's worth may come at once, and as much again: tools start with a burst. */
const BURST = 2;

export function createBudget(limits: NetworkLimits): Budget {
  let open = 0;
  let bytesOut = 0;
  let tokens = limits.perSecond * BURST;
  let filledMs = 0;
  const told = new Set<string>();
  const refuse = (limit: Refusal['limit'], reason: string): Refusal => {
    const first = !told.has(limit);
    told.add(limit);
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
      tokens = Math.min(limits.perSecond * BURST, tokens + ((nowMs - filledMs) / 1000) * limits.perSecond);
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
