// gateway/tunnel.ts: relay an allowed connection unchanged, once its first bytes show that it is for the allowed host.
// Invariant: on port 443 no byte reaches the origin before a ClientHello for exactly this host. On other ports, where an origin
// may speak first, TLS for another host is stopped as well.
import { canonicalHost, readBareHost } from '../protocol/host-name.ts';
import { readClientHello } from './front/client-hello.ts';
import { readFirst } from './front/first-bytes.ts';
import type { Opened } from './authorize.ts';
import { relay } from './front/relay.ts';
import type { Connection } from './connection.ts';

/** `first`: bytes that the client has already sent. */
export function relayTunnel(
  connection: Connection,
  origin: Extract<Opened, { kind: 'open' }>,
  first: Buffer,
  reason: string,
  content: 'named' | 'any' = 'named',
): void {
  const refuse = (problem: string): void => {
    connection.finish('denied', problem);
    connection.socket.destroy();
    origin.socket.destroy();
  };
  const start = (bytes: Buffer, firstWords: ((bytes: Buffer) => 'more' | 'go' | 'end') | null): void => {
    connection.carried = reason;
    relay({
      client: connection.socket,
      origin: origin.socket,
      fromClient: bytes,
      fromOrigin: origin.head,
      counter: connection,
      firstWords,
      done: () => connection.finish('allowed', reason),
    });
  };
  // A grant leads to one fixed address that the user chose, so any content may pass.
  if (content === 'any') return start(first, null);
  if (connection.port !== 443)
    return start(first, (bytes) => {
      if (bytes[0] !== TLS_HANDSHAKE || (bytes.length > 1 && bytes[1] !== TLS_MAJOR)) return 'go';
      const problem = helloProblem(bytes, connection.host);
      if (problem === 'more') return 'more';
      if (problem !== null) refuse(problem);
      return problem === null ? 'go' : 'end';
    });
  const abandon = (): void => void origin.socket.destroy();
  connection.socket.once('close', abandon);
  readHello(connection, first, refuse, (bytes) => {
    connection.socket.off('close', abandon);
    start(bytes, null);
  });
}

const TLS_HANDSHAKE = 0x16;
const TLS_MAJOR = 3;

/** Calls one of the two callbacks once. If the client disconnects first, it calls neither and logs that. */
export function readHello(
  connection: Connection,
  first: Buffer,
  refuse: (problem: string) => void,
  good: (bytes: Buffer) => void,
): void {
  const { socket } = connection;
  const onClose = (): void => {
    clearTimeout(timer);
    connection.finish('failed', 'it went away before its TLS began');
  };
  const timer = setTimeout(() => refuse('its TLS did not begin in time'), connection.firstWordsMs);
  if (socket.closed) return onClose();
  socket.once('close', onClose);
  readFirst(socket, first, (bytes) => {
    const problem = helloProblem(bytes, connection.host);
    if (problem === 'more') return null;
    clearTimeout(timer);
    socket.off('close', onClose);
    return () => (problem === null ? good(bytes) : refuse(problem));
  });
}

/** null: a readable ClientHello for exactly this host. */
function helloProblem(bytes: Buffer, host: string): string | null {
  const hello = readClientHello(bytes);
  if (hello.kind === 'more') return 'more';
  if (hello.kind === 'bad') return `what was sent is not TLS: ${hello.problem}`;
  if (hello.ech) return 'its TLS hides the name of the host (ECH)';
  if (hello.serverName === host) return null;
  // A client sends no name when it connects to an address.
  const named = hello.serverName === null ? null : canonicalHost(hello.serverName);
  if (hello.serverName === null && readBareHost(host)?.kind === 'ip') return null;
  if (hello.serverName === null) return 'its TLS does not name the host (no SNI)';
  return named?.host === host ? null : 'its TLS names another host (SNI)';
}
