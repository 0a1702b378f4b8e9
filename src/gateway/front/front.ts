// gateway/front/front.ts: the proxy listener. HTTP, CONNECT and SOCKS5 share one port; the first byte tells them apart.
// Invariant: input that is not understood completely is refused, and no part of it goes further.
import { canonicalHost, type HostName } from '../../protocol/host-name.ts';
import { httpAnswer, sayAndClose } from './answers.ts';
import { readFirst } from './first-bytes.ts';
import { headerValues, readRequestHead, type RequestHead } from '../intercept/request-head.ts';
import { readGreeting, readPassword, readSocksRequest, SOCKS, socksReply } from './socks5.ts';
import type { Connection } from '../connection.ts';

export interface Carry {
  /** Calls `granted` when the connection is open, or `refused` to answer in the client's protocol. */
  tunnel(
    connection: Connection,
    target: HostName,
    port: number,
    first: Buffer,
    answer: { granted: () => void; refused: (status: number, sentence: string) => void },
  ): void;
  /** A request for a plain http:// URL; `first` begins with it. */
  plainHttp(connection: Connection, target: HostName, port: number, first: Buffer): void;
  settled(connection: Connection): void;
  /** Checks the client's password, where clients other than one sandbox can connect; null: no password is needed. */
  readonly isToken: ((given: string) => boolean) | null;
}

const SOCKS_VERSION = 5;

export function serveProxy(connection: Connection, carry: Carry): void {
  readFirst(connection.socket, Buffer.alloc(0), (bytes, seen) => {
    if (bytes[0] === SOCKS_VERSION) return greet(connection, bytes, carry);
    const result = readRequestHead(bytes, seen);
    if (result.kind === 'more') return null;
    if (result.kind === 'head') return () => serveHead(connection, result.head, bytes, carry);
    return () => refuse(connection, result.status, `the request is not well-formed: ${result.problem}`);
  });
}

function serveHead(connection: Connection, head: RequestHead, bytes: Buffer, carry: Carry): void {
  if (carry.isToken !== null && !carry.isToken(passwordOf(head))) return refuse(connection, 407, NO_TOKEN);
  if (head.method !== 'CONNECT') return servePlain(connection, head, bytes, carry);
  connection.by = 'connect';
  const place = readAuthority(head.target);
  if (place === null && isOddAddress(head.target)) return refuse(connection, 403, ODD_ADDRESS);
  if (place === null || place.port === null) return refuse(connection, 400, 'a CONNECT needs one host and one port');
  if (!agrees(head, place.name.host, place.port)) return refuse(connection, 400, 'its Host is not that of the CONNECT');
  const rest = bytes.subarray(head.bytes);
  carry.settled(connection);
  carry.tunnel(connection, place.name, place.port, rest, {
    granted: () => void connection.socket.write(ESTABLISHED),
    refused: (status, sentence) => sayAndClose(connection.socket, httpAnswer(status, sentence)),
  });
}

const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n';

function servePlain(connection: Connection, head: RequestHead, bytes: Buffer, carry: Carry): void {
  connection.by = 'http';
  const match = /^http:\/\/([^/?#]+)([/?].*)?$/i.exec(head.target);
  const place = match === null ? null : readAuthority(match[1] ?? '');
  if (place === null && isOddAddress(match?.[1] ?? '')) return refuse(connection, 403, ODD_ADDRESS);
  if (place === null)
    return refuse(connection, 400, 'this is a proxy: it takes CONNECT, and requests for http:// URLs in full');
  const port = place.port ?? 80;
  // Only TLS that names its host may reach port 443.
  if (port === 443) return refuse(connection, 400, 'port 443 is for https');
  if (!agrees(head, place.name.host, port)) return refuse(connection, 400, 'its Host is not that of its URL');
  carry.settled(connection);
  carry.plainHttp(connection, place.name, port, bytes);
}

/** Reads "example.com:443"; a user, a path or another spelling is refused. */
export function readAuthority(text: string): { name: HostName; port: number | null } | null {
  const match = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d{1,5}))?$/.exec(text);
  const name = match === null ? null : canonicalHost(match[1] ?? '');
  const port = match?.[2] === undefined ? null : Number(match[2]);
  return name === null || port === 0 || (port ?? 0) > 65_535 ? null : { name, port };
}

const ODD_ADDRESS =
  'network policy: an address has to be written as four decimal numbers, and to be allowed as such. Do not look for a way round';

/** 127.1, 2130706433, 0x7f000001, 0177.0.0.1: some programs read these as addresses, so all of them are refused. */
function isOddAddress(authority: string): boolean {
  return /^(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d+))*\.?(?::\d+)?$/i.test(authority);
}

function agrees(head: RequestHead, host: string, port: number): boolean {
  const [written] = headerValues(head, 'host');
  // A Host that repeats the CONNECT target needs no parsing.
  if (written === undefined || written === head.target) return true;
  const place = readAuthority(written);
  return place !== null && place.name.host === host && (place.port ?? port) === port;
}

function passwordOf(head: RequestHead): string {
  const [scheme = '', given = ''] = (headerValues(head, 'proxy-authorization')[0] ?? '').split(' ');
  if (scheme.toLowerCase() === 'bearer') return given;
  return scheme.toLowerCase() === 'basic'
    ? Buffer.from(given, 'base64')
        .toString('utf8')
        .replace(/^[^:]*:/, '')
    : '';
}

/** Logs the refusal and answers in HTTP. */
export function refuse(connection: Connection, status: number, problem: string): void {
  connection.finish('denied', problem);
  sayAndClose(connection.socket, httpAnswer(status, `ags: ${problem}`));
}

function greet(connection: Connection, bytes: Buffer, carry: Carry): (() => void) | null {
  const { isToken } = carry;
  const greeting = readGreeting(bytes);
  if (greeting.kind === 'more') return null;
  connection.by = 'socks5';
  return () => {
    if (greeting.kind === 'bad' || !(isToken === null ? greeting.withoutPassword : greeting.withPassword)) {
      connection.finish(
        'denied',
        isToken === null ? 'its SOCKS5 asks for a password, and none is used here' : NO_TOKEN,
      );
      return sayAndClose(connection.socket, SOCKS.noMethod);
    }
    const rest = bytes.subarray(greeting.bytes);
    connection.socket.write(isToken === null ? SOCKS.noPasswordNeeded : SOCKS.passwordNeeded);
    if (isToken === null) serveSocks(connection, rest, carry);
    else checkPassword(connection, rest, isToken, (left) => serveSocks(connection, left, carry));
  };
}

const NO_TOKEN = 'this gateway needs its token as the password of the proxy';

function checkPassword(
  connection: Connection,
  first: Buffer,
  isToken: (given: string) => boolean,
  good: (rest: Buffer) => void,
): void {
  readFirst(connection.socket, first, (bytes) => {
    const given = readPassword(bytes);
    if (given.kind === 'more') return null;
    if (given.kind === 'password' && isToken(given.password))
      return () => {
        connection.socket.write(SOCKS.passwordGood);
        good(bytes.subarray(given.bytes));
      };
    return () => {
      connection.finish('denied', NO_TOKEN);
      sayAndClose(connection.socket, SOCKS.passwordBad);
    };
  });
}

function serveSocks(connection: Connection, first: Buffer, carry: Carry): void {
  readFirst(connection.socket, first, (bytes) => {
    const request = readSocksRequest(bytes);
    if (request.kind === 'more') return null;
    if (request.kind === 'bad')
      return () => {
        connection.finish('denied', 'its SOCKS5 request is not a CONNECT to one host and port');
        sayAndClose(connection.socket, socksReply(request.reply));
      };
    return () => {
      carry.settled(connection);
      carry.tunnel(connection, request.host, request.port, bytes.subarray(request.bytes), {
        granted: () => void connection.socket.write(socksReply(SOCKS.granted)),
        refused: (status) =>
          sayAndClose(connection.socket, socksReply(status === 403 ? SOCKS.notAllowed : SOCKS.unreachable)),
      });
    };
  });
}
