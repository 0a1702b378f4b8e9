// gateway/connection.ts: one connection from inside, from its first byte to its line in the log.
// Invariant: each visit is written down exactly once, whatever becomes of it; one that is looked into, request by request.
import type { Socket } from 'node:net';
import type { Decision, Entrance } from '../protocol/network.ts';
import type { Budget, Refusal } from './limits.ts';
import type { Counter } from './front/relay.ts';

export interface Visit extends Counter {
  readonly socket: Socket;
  by: Entrance;
  host: string;
  port: number;
  address: string | undefined;
  unknown: boolean;
  /** Resolves when it is known who asks, or cannot be found out soon: whoever is refused may be gone the next moment. */
  identified(patienceMs: number): Promise<string | undefined>;
  /** Why it was let through, once it was: what its line says if everything ends at once. */
  carried: string | undefined;
  /** One request of a connection that is looked into. */
  request(line: RequestLine): void;
  /** The first call counts, unless requests have been written down. */
  finish(verdict: Decision['verdict'], reason: string): void;
  readonly firstWordsMs: number;
  /** A mistake of ours ends this connection and no other. */
  guard(work: Promise<unknown>): void;
}

export type RequestLine = Pick<Decision, 'verdict' | 'reason' | 'bytesOut' | 'bytesIn' | 'ms'> & {
  readonly method: string;
  readonly path: string;
};

export interface Visits {
  /** `who` it is, where no look at the processes of the sandbox would tell. null: there are too many; it has been told so. */
  welcome(socket: Socket, by: Entrance, who?: string): Visit | null;
  /** The first bytes must have come by now. */
  settled(visit: Visit): void;
  readonly open: number;
  close(): void;
}

/** So many that were one too many are told so; more than that only find the door closed, or they would be too many again. */
const MOST_TURNED_AWAY = 64;

export interface VisitsInput {
  readonly run: string;
  readonly budget: Budget;
  readonly now: () => number;
  readonly log: (decision: Decision) => void;
  readonly onLimit: (refusal: Refusal) => void;
  readonly who: ((peerPort: number) => Promise<string | undefined>) | null;
  /** Whoever connects and says nothing, or says it letter by letter, is sent away after this. */
  readonly firstWordsMs: number;
  readonly tell: (socket: Socket, by: Entrance, reason: string) => void;
}

type Line = { -readonly [Name in keyof Decision]: Decision[Name] };

/** 2026-03-04T05:06:07.089Z; most of it is the same for a second. */
function createTime(): (ms: number) => string {
  let second = NaN;
  let text = '';
  return (ms) => {
    const whole = Math.floor(ms / 1000);
    if (whole !== second) [second, text] = [whole, new Date(whole * 1000).toISOString().slice(0, 20)];
    return `${text}${String(Math.floor(ms - whole * 1000)).padStart(3, '0')}Z`;
  };
}

export function createVisits(input: VisitsInput): Visits {
  const { budget, now } = input;
  const all = new Set<Visit>();
  const young = new Map<Visit, number>();
  const turnedAway = new Set<Socket>();
  /** Lines that wait for the name of a program. */
  const late = new Set<() => void>();
  const askers = createAskers(input.who, now);
  const timeOf = createTime();
  let closed = false;
  // Ordered by time: who came first is due first.
  const sweep = setInterval(() => {
    for (const [visit, since] of young) {
      if (now() - since < input.firstWordsMs) return;
      visit.finish('failed', 'it did not say where to in time');
      visit.socket.destroy();
    }
  }, 1000).unref();

  function turnAway(socket: Socket, by: Entrance, reason: string): void {
    if (turnedAway.size >= MOST_TURNED_AWAY) return void socket.destroy();
    turnedAway.add(socket);
    socket.on('close', () => turnedAway.delete(socket));
    input.tell(socket, by, reason);
  }

  return {
    welcome(socket, by, who) {
      // Errors tell nothing that 'close' does not.
      socket.on('error', () => undefined);
      if (closed) {
        socket.destroy();
        return null;
      }
      const refusal = budget.admit(now());
      if (refusal !== null) {
        input.onLimit(refusal);
        turnAway(socket, by, refusal.reason);
        return null;
      }
      const startedMs = now();
      // Asking for the port is a call to the kernel.
      const program = who !== undefined ? Promise.resolve(who) : askers.ask(socket.remotePort);
      let bytesOut = 0;
      let bytesIn = 0;
      let told = false;
      // Filled in one by one: there are thousands of these in a second, and objects made of objects are slow.
      const put = (line: Line): void => {
        line.run = input.run;
        line.by = visit.by;
        line.host = visit.host;
        line.port = visit.port;
        if (visit.unknown) line.unknown = true;
        if (visit.address !== undefined) line.address = visit.address;
        if (program === null || closed) return input.log(line);
        const writeLate = (asked?: string): void => {
          if (!late.delete(writeLate)) return;
          if (asked !== undefined) line.program = asked;
          input.log(line);
        };
        late.add(writeLate);
        void program.then(writeLate);
      };
      const visit: Visit = {
        socket,
        by,
        host: '',
        port: 0,
        address: undefined,
        unknown: false,
        carried: undefined,
        firstWordsMs: input.firstWordsMs,
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
        identified: (patienceMs) =>
          program === null
            ? Promise.resolve(undefined)
            : Promise.race([
                program,
                new Promise<undefined>((resolve) => setTimeout(resolve, patienceMs, undefined).unref()),
              ]),
        in: (bytes) => void (bytesIn += bytes),
        request({ method, path, verdict, reason, bytesOut: sent, bytesIn: received, ms }) {
          told = true;
          const at = timeOf(now() - ms);
          put({
            at,
            run: '',
            by,
            host: '',
            port: 0,
            method,
            path,
            verdict,
            reason,
            bytesOut: sent,
            bytesIn: received,
            ms,
          });
        },
        finish(verdict, reason) {
          if (told) return;
          told = true;
          young.delete(visit);
          const ms = Math.round(now() - startedMs);
          put({ at: timeOf(startedMs), run: '', by, host: '', port: 0, verdict, reason, bytesOut, bytesIn, ms });
        },
        guard(work) {
          work.catch((error: unknown) => {
            visit.finish(
              'failed',
              `a mistake of the gateway itself (${error instanceof Error ? error.name : 'unknown'})`,
            );
            socket.destroy();
          });
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
      closed = true;
      clearInterval(sweep);
      for (const write of late) write();
      // Whoever closes us closes the log next: no line may come later.
      for (const visit of all) {
        if (visit.carried === undefined) visit.finish('failed', 'the sandbox has ended');
        else visit.finish('allowed', visit.carried);
        visit.socket.destroy();
      }
      for (const socket of turnedAway) socket.destroy();
    },
  };
}

// To find the program behind a connection takes a look at every process inside: not for more than a few in a second.
const LOOKS_PER_SECOND = 10;
// The kernel goes through all connections of the machine for a look, those closed within the last minute included. What all looks
// together take is held to a small share of the time, with enough in hand for whoever comes now and then.
const IN_HAND_MS = 1000;
const SHARE = 0.05;

function createAskers(
  who: VisitsInput['who'],
  now: () => number,
): { ask(peerPort: number | undefined): Promise<string | undefined> | null } {
  let second = 0;
  let looks = 0;
  let inHandMs = IN_HAND_MS;
  let countedAt = now();
  return {
    ask(peerPort) {
      if (who === null || peerPort === undefined) return null;
      const begun = now();
      const current = Math.floor(begun / 1000);
      if (current !== second) [second, looks] = [current, 0];
      inHandMs = Math.min(IN_HAND_MS, inHandMs + (begun - countedAt) * SHARE);
      countedAt = begun;
      if (inHandMs <= 0 || ++looks > LOOKS_PER_SECOND) return null;
      return who(peerPort)
        .catch(() => undefined)
        .finally(() => {
          inHandMs -= now() - begun;
        });
    },
  };
}
