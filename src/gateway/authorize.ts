// gateway/authorize.ts: from "I want to go there" to a connection with the origin, or a reason why not.
// Invariant: rule, then budget, then name, then address, then dial; no step is left out, whatever door the wish came through.
import type { Socket } from 'node:net';
import { hostAndPort, type HostName } from '../protocol/host-name.ts';
import { failureSentence, policySentence, type Remedy } from './front/answers.ts';
import type { Asks } from './asks.ts';
import type { Dialer } from './dial/dial.ts';
import { openOrigin } from './front/own-buffer.ts';
import type { Rules, Verdict } from './rules.ts';
import type { Visit } from './connection.ts';

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

export interface Passages {
  /** A refusal has been written down when this resolves. */
  permit(visit: Visit, target: HostName, port: number): Promise<Permission>;
  open(
    visit: Visit,
    permission: Extract<Permission, { kind: 'granted' }>,
    connect?: (address: string, port: number) => Socket,
  ): Promise<Opened>;
}

/** How long the name of a program is waited for: a person who is asked needs it, a program that is refused does not. */
const ASKED_MS = 2000;
const REFUSED_MS = 100;

export function createPassages(input: {
  readonly rules: () => Rules;
  readonly asks: Asks | null;
  readonly dialer: Dialer;
  readonly remedy: Remedy;
}): Passages {
  return {
    async permit(visit, target, port) {
      visit.host = target.host;
      visit.port = port;
      let verdict = input.rules().connect(target.host, port);
      if (verdict.kind === 'denied' && verdict.unknown && input.asks !== null) {
        const program = await visit.identified(ASKED_MS);
        // Somebody may have answered in the meantime.
        verdict = input.rules().connect(target.host, port);
        if (verdict.kind === 'denied' && verdict.unknown)
          verdict = (await input.asks.wait(target.host, port, program)) ?? verdict;
        visit.unknown = verdict.kind === 'denied' && verdict.unknown;
      }
      if (verdict.kind === 'allowed') return { kind: 'granted', verdict, target };
      await visit.identified(REFUSED_MS);
      visit.finish('denied', verdict.reason);
      return {
        kind: 'refused',
        status: 403,
        sentence: policySentence(hostAndPort(target.host, port), verdict.reason, input.remedy),
      };
    },
    async open(visit, { verdict, target }, connect = openOrigin) {
      const place = hostAndPort(visit.host, visit.port);
      const dialed = await input.dialer.dial(
        {
          host: visit.host,
          port: visit.port,
          kind: target.kind,
          // An address that a rule spells out is what the user wants, wherever it leads.
          granted: target.kind === 'ip',
          exact: verdict.rule.host === visit.host,
        },
        connect,
        visit.socket,
      );
      if (dialed.kind === 'open') {
        dialed.socket.on('error', () => undefined);
        visit.address = dialed.address;
        return dialed;
      }
      if (visit.socket.destroyed) visit.finish('failed', GONE);
      visit.finish(dialed.policy ? 'denied' : 'failed', dialed.reason);
      return dialed.policy
        ? { kind: 'refused', status: 403, sentence: policySentence(place, dialed.reason, input.remedy) }
        : { kind: 'refused', status: dialed.timedOut ? 504 : 502, sentence: failureSentence(place, dialed.reason) };
    },
  };
}

export const GONE = 'it went away before the connection was open';
