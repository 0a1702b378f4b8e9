// gateway/tunnel.ts: carry a permitted connection as it is, once its first words have shown that it is for the host it was
// permitted for.
// Invariant: on port 443 nothing reaches the origin before a ClientHello for exactly this host has been seen; on others,
// where an origin may be the one to speak first, TLS for another host reaches it no more than here.
import { canonicalHost, readBareHost } from '../protocol/host-name.ts';
import { readClientHello } from './front/client-hello.ts';
import { readFirst } from './front/first-bytes.ts';
import type { Opened } from './authorize.ts';
import { relay } from './front/relay.ts';
import type { Visit } from './connection.ts';

/** `first`: what the client has sent already. */
export function carry(
  visit: Visit,
  origin: Extract<Opened, { kind: 'open' }>,
  first: Buffer,
  reason: string,
  content: 'named' | 'any' = 'named',
): void {
  const refuse = (problem: string): void => {
    visit.finish('denied', problem);
    visit.socket.destroy();
    origin.socket.destroy();
  };
  const start = (bytes: Buffer, firstWords: ((bytes: Buffer) => 'more' | 'go' | 'end') | null): void => {
    visit.carried = reason;
    relay({
      client: visit.socket,
      origin: origin.socket,
      fromClient: bytes,
      fromOrigin: origin.head,
      counter: visit,
      firstWords,
      done: () => visit.finish('allowed', reason),
    });
  };
  // A way to one fixed address that the user has opened carries whatever is sent.
  if (content === 'any') return start(first, null);
  if (visit.port !== 443)
    return start(first, (bytes) => {
      if (bytes[0] !== TLS_HANDSHAKE || (bytes.length > 1 && bytes[1] !== TLS_MAJOR)) return 'go';
      const problem = helloProblem(bytes, visit.host);
      if (problem === 'more') return 'more';
      if (problem !== null) refuse(problem);
      return problem === null ? 'go' : 'end';
    });
  const abandon = (): void => void origin.socket.destroy();
  visit.socket.once('close', abandon);
  readHello(visit, first, refuse, (bytes) => {
    visit.socket.off('close', abandon);
    start(bytes, null);
  });
}

const TLS_HANDSHAKE = 0x16;
const TLS_MAJOR = 3;

/** Calls one of the two, once, or none if the client goes away, which is then written down. */
export function readHello(
  visit: Visit,
  first: Buffer,
  refuse: (problem: string) => void,
  good: (bytes: Buffer) => void,
): void {
  const { socket } = visit;
  const onClose = (): void => {
    clearTimeout(timer);
    visit.finish('failed', 'it went away before its TLS began');
  };
  const timer = setTimeout(() => refuse('its TLS did not begin in time'), visit.firstWordsMs);
  if (socket.closed) return onClose();
  socket.once('close', onClose);
  readFirst(socket, first, (bytes) => {
    const problem = helloProblem(bytes, visit.host);
    if (problem === 'more') return null;
    clearTimeout(timer);
    socket.off('close', onClose);
    return () => (problem === null ? good(bytes) : refuse(problem));
  });
}

/** null: a ClientHello for this host, and nothing is hidden in it. */
function helloProblem(bytes: Buffer, host: string): string | null {
  const hello = readClientHello(bytes);
  if (hello.kind === 'more') return 'more';
  if (hello.kind === 'bad') return `what was sent is not TLS: ${hello.problem}`;
  if (hello.ech) return 'its TLS hides the name of the host (ECH)';
  if (hello.serverName === host) return null;
  // An address has no name to give.
  const named = hello.serverName === null ? null : canonicalHost(hello.serverName);
  if (hello.serverName === null && readBareHost(host)?.kind === 'ip') return null;
  if (hello.serverName === null) return 'its TLS does not name the host (no SNI)';
  return named?.host === host ? null : 'its TLS names another host (SNI)';
}
