// gateway/authorize.ts: from a requested destination to a connection with the origin, or to a reason for refusal.
// Invariant: rule, then budget, then name, then address, then dial. No listener skips a step.
import type { Socket } from 'node:net';
import { hostAndPort, type HostName } from '../protocol/host-name.ts';
import type { OwnEndpoint } from '../protocol/network.ts';
import { failureSentence, policySentence, type Remedy } from './front/answers.ts';
import type { Asks } from './asks.ts';
import { isLoopback } from './dial/address.ts';
import type { Dialer } from './dial/dial.ts';
import { openOrigin } from './front/own-buffer.ts';
import { compileRules, type Rules, type Verdict } from './rules.ts';
import type { Connection } from './connection.ts';

export type Permission =
  | {
      readonly kind: 'granted';
      readonly verdict: Extract<Verdict, { kind: 'allowed' }>;
      readonly target: HostName;
      /** The rules for each request of the connection. */
      readonly rules: () => Rules;
      readonly own?: OwnEndpoint;
    }
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
  /** For an endpoint of the user's own: only a deny rule refuses it, and no other rule opens more of its host. */
  permitOwn(connection: Connection, target: HostName, port: number, own: OwnEndpoint): Promise<Permission>;
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
  const refuse = async (connection: Connection, reason: string): Promise<Refused> => {
    await connection.identified(REFUSED_MS);
    connection.finish('denied', reason);
    const place = hostAndPort(connection.host, connection.port);
    return { kind: 'refused', status: 403, sentence: policySentence(place, reason, input.remedy) };
  };
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
      if (verdict.kind === 'allowed') return { kind: 'granted', verdict, target, rules: input.rules };
      return refuse(connection, verdict.reason);
    },
    async permitOwn(connection, target, port, own) {
      connection.host = target.host;
      connection.port = port;
      const rules = (): Rules => ownRules(input.rules(), target.host, port, own);
      const verdict = rules().connect(target.host, port);
      if (verdict.kind === 'allowed') return { kind: 'granted', verdict, target, rules, own };
      return refuse(connection, verdict.reason);
    },
    async open(connection, { verdict, target, own }, connect = openOrigin) {
      const place = hostAndPort(connection.host, connection.port);
      const dialed = await input.dialer.dial(
        {
          host: connection.host,
          port: connection.port,
          kind: target.kind,
          // A rule that spells out an address means that address, wherever it leads.
          granted: target.kind === 'ip' || own !== undefined,
          exact: verdict.rule.host === connection.host,
        },
        connect,
        connection.socket,
      );
      if (dialed.kind === 'open' && own?.tls === false && !isLoopback(dialed.address)) {
        dialed.socket.destroy();
        return refuse(
          connection,
          `${connection.host} leads to ${dialed.address}, and without TLS only loopback may be used`,
        );
      }
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

/** The user's deny rules, and requests below the endpoint's path. */
function ownRules({ list }: Rules, host: string, port: number, { path }: OwnEndpoint): Rules {
  const below = { methods: null, path: path === '' ? null : `${path}/*` };
  return compileRules([
    ...list.filter(({ action }) => action === 'deny'),
    { action: 'allow', host, port, ...below, origin: 'a model endpoint of yours' },
  ]);
}

export const GONE = 'it went away before the connection was open';
