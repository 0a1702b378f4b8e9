// gateway/visit.ts: one connection from inside, from its first byte to its line in the log.
// Invariant: each visit is written down exactly once, whatever becomes of it.
import type { Socket } from 'node:net';
import type { Decision, Entrance } from '../protocol/network.ts';
import type { Budget, Refusal } from './limits.ts';
import type { Counter } from './relay.ts';

export interface Visit extends Counter {
  readonly socket: Socket;
  by: Entrance;
  host: string;
  port: number;
  address: string | undefined;
  unknown: boolean;
  /** The first call counts. */
  finish(verdict: Decision['verdict'], reason: string): void;
}

export interface Visits {
  /** null: there are too many; it has been told so. */
  welcome(socket: Socket, by: Entrance): Visit | null;
  /** The first bytes must have come by now. */
  settled(visit: Visit): void;
  readonly open: number;
  close(): void;
}

/** Whoever connects and says nothing, or says it letter by letter, is sent away. */
const FIRST_WORDS_MS = 30_000;

export interface VisitsInput {
  readonly run: string;
  readonly budget: Budget;
  readonly now: () => number;
  readonly log: (decision: Decision) => void;
  readonly onLimit: (refusal: Refusal) => void;
  readonly who: ((peerPort: number) => Promise<string | undefined>) | null;
  readonly tell: (socket: Socket, by: Entrance, reason: string) => void;
}

export function createVisits(input: VisitsInput): Visits {
  const { budget, now } = input;
  const all = new Set<Visit>();
  const young = new Map<Visit, number>();
  const askers = createAskers(input.who, now);
  // Ordered by time: who came first is due first.
  const sweep = setInterval(() => {
    for (const [visit, since] of young) {
      if (now() - since < FIRST_WORDS_MS) return;
      visit.finish('failed', 'it did not say where to in time');
      visit.socket.destroy();
    }
  }, 1000).unref();
  return {
    welcome(socket, by) {
      // Errors tell nothing that 'close' does not.
      socket.on('error', () => undefined);
      const refusal = budget.admit(now());
      if (refusal !== null) {
        input.onLimit(refusal);
        input.tell(socket, by, refusal.reason);
        return null;
      }
      const startedMs = now();
      const program = askers.ask(socket.remotePort);
      let bytesOut = 0;
      let bytesIn = 0;
      let told = false;
      const visit: Visit = {
        socket,
        by,
        host: '',
        port: 0,
        address: undefined,
        unknown: false,
        out(bytes) {
          bytesOut += bytes;
          if (budget.spend(bytes)) return true;
          const spent = budget.spent();
          if (spent !== null) {
            input.onLimit(spent);
            visit.finish('denied', spent.reason);
          }
          return false;
        },
        in: (bytes) => void (bytesIn += bytes),
        finish(verdict, reason) {
          if (told) return;
          told = true;
          young.delete(visit);
          const write = (asked: string | undefined): void =>
            input.log({
              at: new Date(startedMs).toISOString(),
              run: input.run,
              by: visit.by,
              host: visit.host,
              port: visit.port,
              verdict,
              reason,
              ...(visit.unknown ? { unknown: true as const } : {}),
              ...(visit.address === undefined ? {} : { address: visit.address }),
              ...(asked === undefined ? {} : { program: asked }),
              bytesOut,
              bytesIn,
              ms: Math.round(now() - startedMs),
            });
          if (program === null) write(undefined);
          else void program.then(write);
        },
      };
      all.add(visit);
      young.set(visit, startedMs);
      socket.on('close', () => {
        all.delete(visit);
        budget.release();
        if (young.has(visit)) visit.finish('failed', 'it went away before it said where to');
      });
      return visit;
    },
    settled: (visit) => void young.delete(visit),
    get open() {
      return all.size;
    },
    close() {
      clearInterval(sweep);
      for (const { socket } of all) socket.destroy();
    },
  };
}

// To find the program behind a connection takes a look at every process inside: not for more than a few in a second.
const LOOKS_PER_SECOND = 10;

function createAskers(
  who: VisitsInput['who'],
  now: () => number,
): { ask(peerPort: number | undefined): Promise<string | undefined> | null } {
  let second = 0;
  let looks = 0;
  return {
    ask(peerPort) {
      if (who === null || peerPort === undefined) return null;
      const current = Math.floor(now() / 1000);
      if (current !== second) [second, looks] = [current, 0];
      return ++looks > LOOKS_PER_SECOND ? null : who(peerPort);
    },
  };
}
