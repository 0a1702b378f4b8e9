// gateway/dial/upstream.ts: a connection through the proxy that the user's network requires.
// Invariant: of the proxy's answer only its success or failure counts; no reason contains text from the proxy or a password.
import type { Socket } from 'node:net';
import { hostAndPort } from '../../protocol/host-name.ts';
import { addressBytes } from './address.ts';

export interface ProxyAccess {
  readonly kind: 'http' | 'socks5';
  readonly host: string;
  readonly port: number;
  /** "user:password". */
  readonly auth: string | null;
}

export type Through =
  /** `head`: bytes after the proxy's answer. The socket is paused. */
  | { readonly kind: 'open'; readonly socket: Socket; readonly head: Buffer }
  /** `fault` 'target': another address of the target may work. */
  | {
      readonly kind: 'failed';
      readonly reason: string;
      readonly timedOut: boolean;
      readonly fault: 'proxy' | 'target';
    };

/** `target`: the name or address to send to the proxy. `open`: returns a socket to the proxy, connected or connecting. */
export function connectThrough(
  proxy: ProxyAccess,
  target: { readonly host: string; readonly port: number },
  open: () => Socket,
  signal: AbortSignal,
): Promise<Through> {
  const called = `the proxy ${hostAndPort(proxy.host, proxy.port)}`;
  const talk = proxy.kind === 'http' ? talkHttp(proxy.auth, target) : talkSocks(proxy.auth, target);
  return new Promise((resolve) => {
    const socket = open();
    let heard: Buffer = Buffer.alloc(0);

    const leave = (): void => {
      signal.removeEventListener('abort', onAbort);
      socket.off('connect', onConnect).off('data', onData).off('end', onEnd).off('close', onEnd).off('error', onError);
      // The caller may add its error listener a moment later, and an unhandled error would end the process.
      socket.on('error', ignore);
    };
    const fail = (reason: string, more: { timedOut?: boolean; fault?: 'target' } = {}): void => {
      const { timedOut = false, fault = 'proxy' } = more;
      leave();
      socket.destroy();
      resolve({ kind: 'failed', reason: `${called} ${reason}`, timedOut, fault });
    };
    const step = (chunk: Buffer): void => {
      heard = heard.length === 0 ? chunk : Buffer.concat([heard, chunk]);
      for (;;) {
        const next = talk.hear(heard);
        if (next.kind === 'more') {
          if (heard.length > MOST_BYTES) fail('gave an answer without an end');
          return;
        }
        if (next.kind === 'failed') return fail(next.reason);
        if (next.kind === 'closed') return fail(`did not open the connection (${next.code})`, { fault: 'target' });
        heard = heard.subarray(next.used);
        if (next.kind === 'say') {
          socket.write(next.bytes);
          continue;
        }
        socket.pause();
        leave();
        return resolve({ kind: 'open', socket, head: heard });
      }
    };
    const onConnect = (): void => {
      socket.on('data', onData);
      socket.write(talk.opening);
    };
    const onData = (chunk: Buffer): void => step(chunk);
    const onEnd = (): void => fail('closed the connection');
    const onError = (error: NodeJS.ErrnoException): void => {
      const timedOut = error.code === 'ETIMEDOUT';
      fail(timedOut ? 'did not answer in time' : `cannot be reached (${error.code ?? 'error'})`, { timedOut });
    };
    const onAbort = (): void => fail('did not answer in time', { timedOut: true });

    socket.on('end', onEnd).on('close', onEnd).on('error', onError);
    if (talk.problem !== null) return fail(talk.problem);
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort);
    if (socket.connecting) socket.on('connect', onConnect);
    else onConnect();
  });
}

function ignore(): void {}

/** One side of the handshake with a proxy: bytes to send, and the meaning of its answers. */
interface Talk {
  readonly opening: Buffer;
  /** Why the handshake cannot start. */
  readonly problem: string | null;
  hear(heard: Buffer): Step;
}

type Step =
  | { readonly kind: 'more' }
  | { readonly kind: 'say'; readonly used: number; readonly bytes: Buffer }
  | { readonly kind: 'open'; readonly used: number }
  /** The proxy refuses or cannot reach the target. */
  | { readonly kind: 'closed'; readonly code: string }
  | { readonly kind: 'failed'; readonly reason: string };

const MORE: Step = { kind: 'more' };
const MOST_BYTES = 16 * 1024;

function talkHttp(auth: string | null, target: { readonly host: string; readonly port: number }): Talk {
  const place = hostAndPort(target.host, target.port);
  const credentials =
    auth === null ? '' : `Proxy-Authorization: Basic ${Buffer.from(auth, 'utf8').toString('base64')}\r\n`;
  return {
    opening: Buffer.from(`CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n${credentials}\r\n`, 'latin1'),
    problem: null,
    hear(heard) {
      // Without an HTTP status line there is no known end to wait for.
      const start = heard.toString('latin1', 0, 7);
      if (start !== 'HTTP/1.'.slice(0, start.length)) return { kind: 'failed', reason: 'does not speak HTTP' };
      const end = heard.indexOf('\r\n\r\n');
      if (end < 0) return MORE;
      const status = HTTP_ANSWER.exec(heard.toString('latin1', 0, end + 2))?.[1];
      if (status === undefined) return { kind: 'failed', reason: 'gave an answer that is not HTTP' };
      if (status.startsWith('2')) return { kind: 'open', used: end + 4 };
      // Some proxies answer a wrong password with 401.
      if (status === '407' || status === '401') return { kind: 'failed', reason: wantsPassword(auth) };
      return { kind: 'closed', code: `status ${status}` };
    },
  };
}

// Programs disagree about a lone line feed or a header name with a space, so neither is accepted.
const HTTP_ANSWER =
  /^HTTP\/1\.[01] ([2-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;

function wantsPassword(auth: string | null): string {
  return auth === null ? 'wants a user and a password' : 'did not accept the user and password';
}

function talkSocks(auth: string | null, target: { readonly host: string; readonly port: number }): Talk {
  const colon = auth?.indexOf(':') ?? 0;
  const user = Buffer.from(auth?.slice(0, colon) ?? '', 'utf8');
  const password = Buffer.from(auth?.slice(colon + 1) ?? '', 'utf8');
  const wrong = auth !== null && (colon < 1 || user.length > 255 || password.length === 0 || password.length > 255);
  const request = socksRequest(target);
  let stage: 'method' | 'password' | 'request' = 'method';

  function method(heard: Buffer): Step {
    if (heard[0] !== undefined && heard[0] !== 5) return { kind: 'failed', reason: 'does not speak SOCKS5' };
    if (heard.length < 2) return MORE;
    if (heard[1] === 0) {
      stage = 'request';
      return { kind: 'say', used: 2, bytes: request };
    }
    if (heard[1] !== 2 || auth === null) return { kind: 'failed', reason: wantsPassword(auth) };
    stage = 'password';
    const bytes = Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([password.length]), password]);
    return { kind: 'say', used: 2, bytes };
  }

  function passwordAnswer(heard: Buffer): Step {
    if (heard.length < 2) return MORE;
    if (heard[0] !== 1 || heard[1] !== 0) return { kind: 'failed', reason: wantsPassword(auth) };
    stage = 'request';
    return { kind: 'say', used: 2, bytes: request };
  }

  return {
    opening: Buffer.from(auth === null ? [5, 1, 0] : [5, 2, 0, 2]),
    problem: wrong ? 'cannot be given the user and password: each has 1 to 255 bytes, with a colon between them' : null,
    hear(heard) {
      switch (stage) {
        case 'method':
          return method(heard);
        case 'password':
          return passwordAnswer(heard);
        case 'request':
          return socksAnswer(heard);
      }
    },
  };
}

function socksRequest(target: { readonly host: string; readonly port: number }): Buffer {
  const port = Buffer.alloc(2);
  port.writeUInt16BE(target.port);
  return Buffer.concat([Buffer.from([5, 1, 0]), socksAddress(target.host), port]);
}

function socksAddress(host: string): Buffer {
  const bytes = addressBytes(host);
  if (bytes !== null) return Buffer.from([bytes.length === 4 ? 1 : 4, ...bytes]);
  return Buffer.concat([Buffer.from([3, host.length]), Buffer.from(host, 'latin1')]);
}

function socksAnswer(heard: Buffer): Step {
  if (heard.length < 2) return MORE;
  const [version, code = 1, reserved = 0, type, length = 0] = heard;
  if (version !== 5 || reserved !== 0) return { kind: 'failed', reason: 'gave an answer that is not SOCKS5' };
  if (code !== 0) return { kind: 'closed', code: SOCKS_CODES[code] ?? `code ${code}` };
  if (heard.length < 5) return MORE;
  // The proxy's outgoing address follows; it is not used.
  const size = type === 1 ? 4 : type === 4 ? 16 : type === 3 ? 1 + length : null;
  if (size === null) return { kind: 'failed', reason: 'gave an answer that is not SOCKS5' };
  return heard.length < 6 + size ? MORE : { kind: 'open', used: 6 + size };
}

const SOCKS_CODES: Readonly<Record<number, string>> = {
  1: 'a failure of its own',
  2: 'its rules forbid it',
  3: 'network unreachable',
  4: 'host unreachable',
  5: 'connection refused',
  6: 'it took too long',
  7: 'it cannot do that',
  8: 'it does not know this kind of address',
};
