// gateway/dial.ts: open a connection to a host that a rule allows.
// Invariant: a name is resolved once, every address is checked, and exactly a checked address is dialled.
import type { Socket } from 'node:net';
import type { UpstreamProxy } from '../protocol/network.ts';
import type { Guard } from './address.ts';
import type { Resolver } from './resolve.ts';

export interface DialTarget {
  readonly host: string;
  readonly port: number;
  readonly kind: 'name' | 'ip';
  /** The address itself was named by the user (an IP literal in a rule, a tcp grant): the guard is not asked. */
  readonly granted: boolean;
  /** A rule names the host in full (resolve.ts). */
  readonly exact?: boolean;
}

export type Dialed =
  | {
      readonly kind: 'open';
      readonly socket: Socket;
      /** The address that was dialled; through a proxy that looks names up itself, the name. */
      readonly address: string;
      readonly head: Buffer;
    }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      /** True: 403. False: 502, or 504 if it timed out. */
      readonly policy: boolean;
      readonly timedOut: boolean;
    };

export type DialUpstream = Omit<UpstreamProxy, 'auth' | 'origin'> & { readonly auth: string | null };

export interface Dialer {
  dial(target: DialTarget, open: (address: string, port: number) => Socket): Promise<Dialed>;
}

export function createDialer(_input: {
  readonly resolver: Pick<Resolver, 'resolve'>;
  readonly guard: Guard;
  readonly upstreams: readonly DialUpstream[];
  readonly connectTimeoutMs: number;
}): Dialer {
  throw new Error('not yet');
}
