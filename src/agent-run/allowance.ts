// agent-run/allowance.ts: what an agent has left, in returns and time, since the last message of the user. Turns to which a
// post-stop hook sends it back use up the limits of the turn that the user asked for.
import { formatDuration } from '../lib/units.ts';
import type { ControlServer } from './control-server.ts';
import { MAX_SENT_BACK } from './run-hooks.ts';

export interface Allowance extends Disposable {
  /** The user sent a message: everything counts anew. */
  renew(): void;
  /** false: it was sent back as often as it may be. */
  sendBack(): boolean;
  /** The time of this wait does not count. */
  outside<T>(wait: () => Promise<T>): Promise<T>;
}

/** Node's timers cannot wait longer. */
const MOST_SECONDS = 2 ** 31 / 1000;

export function createAllowance(control: Pick<ControlServer, 'stop'>, wallSeconds: number | null): Allowance {
  let sentBack = 0;
  let startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const disarm = (): void => {
    clearTimeout(timer);
    timer = undefined;
  };
  const arm = (): void => {
    // The limit of the first turn is kept by its sandbox.
    if (wallSeconds !== null && wallSeconds < MOST_SECONDS)
      timer ??= setTimeout(end, Math.max(0, wallSeconds * 1000 - (performance.now() - startedAt)));
  };
  const end = (): void =>
    control.stop(true, {
      text: `Stopped: time limit of ${formatDuration(wallSeconds ?? 0)} reached (limits.time), with the turns after a hook refused.`,
      failed: true,
    });
  return {
    renew() {
      disarm();
      sentBack = 0;
      startedAt = performance.now();
    },
    sendBack() {
      if (++sentBack > MAX_SENT_BACK) return false;
      arm();
      return true;
    },
    async outside(wait) {
      const before = performance.now();
      disarm();
      try {
        return await wait();
      } finally {
        startedAt += performance.now() - before;
        if (sentBack > 0) arm();
      }
    },
    [Symbol.dispose]: disarm,
  };
}
