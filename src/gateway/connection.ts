// gateway/connection.ts: one connection from inside, from its first byte to its line in the log.
// Invariant: each connection is logged exactly once, however it ends; an inspected one has a line for each request instead.
import type { Socket } from 'node:net';
import type { Decision, Entrance } from '../protocol/network.ts';
import type { Budget, Refusal } from './limits.ts';
import type { Counter } from './front/relay.ts';

export interface Connection extends Counter {
  readonly socket: Socket;
  by: Entrance;
  host: string;
  port: number;
  address: string | undefined;
  unknown: boolean;
  /** Resolves with the asking program, or with undefined after `patienceMs`. A refused program may exit the next moment. */
  identified(patienceMs: number): Promise<string | undefined>;
  /** Why it was allowed, once it was: the reason to log if the gateway closes. */
  carried: string | undefined;
  /** Logs one request of an inspected connection. */
  request(line: RequestLine): void;
  /** Logs the connection. Later calls, and calls after a logged request, do nothing. */
  finish(verdict: Decision['verdict'], reason: string): void;
  readonly firstWordsMs: number;
  /** An internal error in `work` ends this connection and no other. */
  guard(work: Promise<unknown>): void;
}

export type RequestLine = Pick<Decision, 'verdict' | 'reason' | 'bytesOut' | 'bytesIn' | 'ms'> & {
  readonly method: string;
  readonly path: string;
};

export interface Connections {
  /** `who`: the client's name, if no process of the sandbox is the client. null: a limit was reached; the client got an answer. */
  welcome(socket: Socket, by: Entrance, who?: string): Connection | null;
  /** Ends the deadline for the client's first bytes. */
  settled(connection: Connection): void;
  readonly open: number;
  close(): void;
}

/** So many clients over a limit get an answer. Further ones are only closed, or the answers would exceed the limit again. */
const MOST_TURNED_AWAY = 64;

export interface ConnectionsInput {
  readonly run: string;
  readonly budget: Budget;
  readonly now: () => number;
  readonly log: (decision: Decision) => void;
  readonly onLimit: (refusal: Refusal) => void;
  readonly who: ((peerPort: number) => Promise<string | undefined>) | null;
  /** A client that has not named its destination by now, because it is silent or slow, is disconnected. */
  readonly firstWordsMs: number;
  readonly tell: (socket: Socket, by: Entrance, reason: string) => void;
}

type Line = { -readonly [Name in keyof Decision]: Decision[Name] };

/** 2026-03-04T05:06:07.089Z. The text up to the second is cached. */
function createTime(): (ms: number) => string {
  let second = NaN;
  let text = '';
  return (ms) => {
    const whole = Math.floor(ms / 1000);
    if (whole !== second) [second, text] = [whole, new Date(whole * 1000).toISOString().slice(0, 20)];
    return `${text}${String(Math.floor(ms - whole * 1000)).padStart(3, '0')}Z`;
  };
}

export function createConnections(input: ConnectionsInput): Connections {
  const { budget, now } = input;
  const all = new Set<Connection>();
  const undecided = new Map<Connection, number>();
  const turnedAway = new Set<Socket>();
  /** Lines that wait for the name of a program. */
  const late = new Set<() => void>();
  const lookups = createLookups(input.who, now);
  const timeOf = createTime();
  let closed = false;
  // The map is ordered by time, so the first connection is due first.
  const sweep = setInterval(() => {
    for (const [connection, since] of undecided) {
      if (now() - since < input.firstWordsMs) return;
      connection.finish('failed', 'it did not say where to in time');
      connection.socket.destroy();
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
      // 'close' follows every error.
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
      // Reading the port is a system call.
      const program = who !== undefined ? Promise.resolve(who) : lookups.ask(socket.remotePort);
      let bytesOut = 0;
      let bytesIn = 0;
      let logged = false;
      // Fields are set one by one: thousands of lines are written in a second, and object spreads are slow.
      const put = (line: Line): void => {
        line.run = input.run;
        line.by = connection.by;
        line.host = connection.host;
        line.port = connection.port;
        if (connection.unknown) line.unknown = true;
        if (connection.address !== undefined) line.address = connection.address;
        if (program === null || closed) return input.log(line);
        const writeLate = (asked?: string): void => {
          if (!late.delete(writeLate)) return;
          if (asked !== undefined) line.program = asked;
          input.log(line);
        };
        late.add(writeLate);
        void program.then(writeLate);
      };
      const connection: Connection = {
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
            connection.finish('denied', spent.reason);
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
          logged = true;
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
          if (logged) return;
          logged = true;
          undecided.delete(connection);
          const ms = Math.round(now() - startedMs);
          put({ at: timeOf(startedMs), run: '', by, host: '', port: 0, verdict, reason, bytesOut, bytesIn, ms });
        },
        guard(work) {
          work.catch((error: unknown) => {
            connection.finish(
              'failed',
              `a mistake of the gateway itself (${error instanceof Error ? error.name : 'unknown'})`,
            );
            socket.destroy();
          });
        },
      };
      all.add(connection);
      undecided.set(connection, startedMs);
      socket.on('close', () => {
        all.delete(connection);
        budget.release();
        if (undecided.has(connection)) connection.finish('failed', 'it went away before it said where to');
      });
      return connection;
    },
    settled: (connection) => void undecided.delete(connection),
    get open() {
      return all.size;
    },
    close() {
      closed = true;
      clearInterval(sweep);
      for (const write of late) write();
      // The caller closes the log next, so no line may come later.
      for (const connection of all) {
        if (connection.carried === undefined) connection.finish('failed', 'the sandbox has ended');
        else connection.finish('allowed', connection.carried);
        connection.socket.destroy();
      }
      for (const socket of turnedAway) socket.destroy();
    },
  };
}

// Finding the program behind a connection reads every process inside, so only a few lookups are made in a second.
const LOOKS_PER_SECOND = 10;
// For a lookup the kernel walks all connections of the machine, also those closed within the last minute. All lookups together
// get a small share of the time, with a reserve for occasional connections.
const IN_HAND_MS = 1000;
const SHARE = 0.05;

function createLookups(
  who: ConnectionsInput['who'],
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
