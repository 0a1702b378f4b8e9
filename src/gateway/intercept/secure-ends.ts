// gateway/intercept/secure-ends.ts: the two ends of an intercepted connection: towards the client ags acts as the host,
// towards the host as a client that trusts the machine's roots.
// Invariant: an origin without a valid certificate for the host gets no byte of a request. Plain http:// has no certificate, and
// no secret ever goes there, except to a model endpoint of the user's own on this machine's loopback (authorize.ts checks it).
import { isIP, type Socket } from 'node:net';
import { connect, createSecureContext, type SecureContext, TLSSocket } from 'node:tls';
import { hostAndPort } from '../../protocol/host-name.ts';
import { LINGER_MS } from '../front/answers.ts';
import { createSource, type Source } from './byte-source.ts';
import type { Authority } from './certificate.ts';

export interface End {
  readonly socket: Socket;
  readonly source: Source;
}

/** `first`: bytes that were already read from the client. */
export function openClient(client: Socket, first: Buffer, authority: Authority | null, host: string): End {
  client.setNoDelay(true);
  if (authority === null) return { socket: client, source: createSource(client, first) };
  if (first.length > 0) client.unshift(first);
  client.on('error', () => undefined);
  const socket = new TLSSocket(client, {
    isServer: true,
    secureContext: authority.contextFor(host),
    ALPNProtocols: ['http/1.1'],
  });
  // Without a TLS server object, errors after the handshake are reported only here.
  socket.on('_tlsError', () => socket.destroy());
  return { socket, source: createSource(socket) };
}

export type Dialled =
  | { readonly kind: 'open'; readonly socket: Socket }
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string };

export type Opened = { readonly kind: 'open'; readonly end: End } | Extract<Dialled, { kind: 'refused' }>;

const HANDSHAKE_MS = 30_000;

export async function openOrigin(
  to: { host: string; port: number; upstream: 'https' | 'http'; roots: readonly string[] },
  dial: () => Promise<Dialled>,
): Promise<Opened> {
  const dialled = await dial();
  if (dialled.kind === 'refused') return dialled;
  dialled.socket.on('error', () => undefined);
  dialled.socket.setNoDelay(true);
  if (to.upstream === 'http')
    return { kind: 'open', end: { socket: dialled.socket, source: createSource(dialled.socket) } };
  const socket = connect({
    socket: dialled.socket,
    host: to.host,
    servername: isIP(to.host) === 0 ? to.host : '',
    secureContext: contextFor(to.roots),
    ALPNProtocols: ['http/1.1'],
    // Explicit, because an environment variable can change the default.
    rejectUnauthorized: true,
  });
  const problem = await handshake(socket);
  if (problem === null) return { kind: 'open', end: { socket, source: createSource(socket) } };
  socket.destroy();
  const place = hostAndPort(to.host, to.port);
  return { kind: 'refused', status: 502, reason: `There is no secure connection to ${place}: ${problem}.` };
}

/** null: the origin has a valid certificate. */
function handshake(socket: TLSSocket): Promise<string | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve('it did not answer in time'), HANDSHAKE_MS);
    socket.once('secureConnect', () => settle(socket.authorized ? null : 'its certificate is not valid'));
    socket.on('error', (error: NodeJS.ErrnoException) => settle(describe(error.code)));
    socket.once('close', () => settle('it closed the connection'));
    function settle(problem: string | null): void {
      clearTimeout(timer);
      resolve(problem);
    }
  });
}

// The error's message holds text of the other side; its code does not.
function describe(code: string | undefined): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'its certificate is for another host';
  return code !== undefined && /^[A-Z0-9_]+$/.test(code) ? `TLS says ${code}` : 'TLS failed';
}

/** Parsing all roots takes milliseconds, so it is done once for each list. */
const contexts = new WeakMap<readonly string[], SecureContext>();

function contextFor(roots: readonly string[]): SecureContext {
  const known = contexts.get(roots);
  if (known !== undefined) return known;
  // On a machine without a list of roots, Node's own list counts.
  const context = createSecureContext({ ca: roots.length > 0 ? [...roots] : undefined, minVersion: 'TLSv1.2' });
  contexts.set(roots, context);
  return context;
}

/** Reads what the client still sends for a while: closing at once would make its kernel discard the answer. */
export async function closeGently(client: End): Promise<void> {
  const { socket, source } = client;
  if (socket.destroyed) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    socket.end();
    source.discard();
  });
}
