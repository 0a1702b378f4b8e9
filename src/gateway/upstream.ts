// gateway/upstream.ts: a connection through the proxy that the user's own network demands.
// Invariant: nothing is believed of the proxy's answer but that it opened the connection, and its password is in no message.
import type { Socket } from 'node:net';

export interface ProxyAccess {
  readonly kind: 'http' | 'socks5';
  readonly host: string;
  readonly port: number;
  /** "user:password". */
  readonly auth: string | null;
}

export type Through =
  /** `head`: bytes that came after the proxy's answer. The socket is paused. */
  | { readonly kind: 'open'; readonly socket: Socket; readonly head: Buffer }
  | { readonly kind: 'failed'; readonly reason: string; readonly timedOut: boolean };

export function connectThrough(
  _proxy: ProxyAccess,
  _target: { readonly host: string; readonly port: number },
  _open: () => Socket,
  _signal: AbortSignal,
): Promise<Through> {
  throw new Error('not yet');
}
