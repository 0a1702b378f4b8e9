// gateway/authorize.ts: from a requested destination to a connection with the origin, or to a reason for refusal.
// Invariant: rule, then budget, then name, then address, then dial. No listener skips a step.
import type { Socket } from 'node:net';
import { hostAndPort, type HostName } from '../protocol/host-name.ts';
import { failureSentence, policySentence, type Remedy } from './front/answers.ts';
import type { Asks } from './asks.ts';
import type { Dialer } from './dial/dial.ts';
import { openOrigin } from './front/own-buffer.ts';
import type { Rules, Verdict } from './rules.ts';
import type { Connection } from './connection.ts';

export type Permission =
  | { readonly kind: 'granted'; readonly verdict: Extract<Verdict, { kind: 'allowed' }>; readonly target: HostName }
  | Refused;

export interface Refused {
  readonly kind: 'refused';
  readonly status: 403 | 502 | 504;
  readonly sentence: string;
}

export type Opened =
  | { readonly kind: 'open'; readonly socket: Socket; readonly head: Buffer; readonly address: string }
  | Refused;

export interface Authorize {
  /** A refusal is in the log when this resolves. */
  permit(connection: Connection, target: HostName, port: number): Promise<Permission>;
  open(
    connection: Connection,
    permission: Extract<Permission, { kind: 'granted' }>,
    connect?: (address: string, port: number) => Socket,
  ): Promise<Opened>;
}

/** How long to wait for the program's name: a user who must answer needs it, a refused program does not. */
const ASKED_MS = 2000;
const REFUSED_MS = 100;

export function createAuthorize(input: {
  readonly rules: () => Rules;
  readonly asks: Asks | null;
  readonly dialer: Dialer;
  readonly remedy: Remedy;
}): Authorize {
  return {
    async permit(connection, target, port) {
      connection.host = target.host;
      connection.port = port;
      let verdict = input.rules().connect(target.host, port);
      if (verdict.kind === 'denied' && verdict.unknown && input.asks !== null) {
        const program = await connection.identified(ASKED_MS);
        // The user may have answered in the meantime.
        verdict = input.rules().connect(target.host, port);
        if (verdict.kind === 'denied' && verdict.unknown)
          verdict = (await input.asks.wait(target.host, port, program)) ?? verdict;
        connection.unknown = verdict.kind === 'denied' && verdict.unknown;
      }
      if (verdict.kind === 'allowed') return { kind: 'granted', verdict, target };
      await connection.identified(REFUSED_MS);
      connection.finish('denied', verdict.reason);
      return {
        kind: 'refused',
        status: 403,
        sentence: policySentence(hostAndPort(target.host, port), verdict.reason, input.remedy),
      };
    },
    async open(connection, { verdict, target }, connect = openOrigin) {
      const place = hostAndPort(connection.host, connection.port);
      const dialed = await input.dialer.dial(
        {
          host: connection.host,
          port: connection.port,
          kind: target.kind,
          // A rule that spells out an address means that address, wherever it leads.
          granted: target.kind === 'ip',
          exact: verdict.rule.host === connection.host,
        },
        connect,
        connection.socket,
      );
      if (dialed.kind === 'open') {
        dialed.socket.on('error', () => undefined);
        connection.address = dialed.address;
        return dialed;
      }
      if (connection.socket.destroyed) connection.finish('failed', GONE);
      connection.finish(dialed.policy ? 'denied' : 'failed', dialed.reason);
      return dialed.policy
        ? { kind: 'refused', status: 403, sentence: policySentence(place, dialed.reason, input.remedy) }
        : { kind: 'refused', status: dialed.timedOut ? 504 : 502, sentence: failureSentence(place, dialed.reason) };
    },
  };
}

export const GONE = 'it went away before the connection was open';
