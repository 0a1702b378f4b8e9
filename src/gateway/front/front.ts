// gateway/front/front.ts: the proxy's door. HTTP, CONNECT and SOCKS5 come in at one port; the first byte tells which.
// Invariant: whatever is not understood completely is refused, and nothing of it goes any further.
import { canonicalHost, type HostName } from '../../protocol/host-name.ts';
import { httpAnswer, sayAndClose } from './answers.ts';
import { readFirst } from './first-bytes.ts';
import { headerValues, readRequestHead, type RequestHead } from '../intercept/request-head.ts';
import { readGreeting, readPassword, readSocksRequest, SOCKS, socksReply } from './socks5.ts';
import type { Visit } from '../connection.ts';

export interface Travel {
  /** Says `granted` when the way is open, or `refused` with the answer in the client's language. */
  tunnel(
    visit: Visit,
    target: HostName,
    port: number,
    first: Buffer,
    answer: { granted: () => void; refused: (status: number, sentence: string) => void },
  ): void;
  /** A request for a plain http:// URL; `first` begins with it. */
  plainHttp(visit: Visit, target: HostName, port: number, first: Buffer): void;
  settled(visit: Visit): void;
  /** What clients have to give as a password, where others than one sandbox can come to this door; null: nothing. */
  readonly isToken: ((given: string) => boolean) | null;
}

const SOCKS_VERSION = 5;

export function serveProxy(visit: Visit, travel: Travel): void {
  readFirst(visit.socket, Buffer.alloc(0), (bytes, seen) => {
    if (bytes[0] === SOCKS_VERSION) return greet(visit, bytes, travel);
    const result = readRequestHead(bytes, seen);
    if (result.kind === 'more') return null;
    if (result.kind === 'head') return () => serveHead(visit, result.head, bytes, travel);
    return () => refuse(visit, result.status, `the request is not well-formed: ${result.problem}`);
  });
}

function serveHead(visit: Visit, head: RequestHead, bytes: Buffer, travel: Travel): void {
  if (travel.isToken !== null && !travel.isToken(passwordOf(head))) return refuse(visit, 407, NO_TOKEN);
  if (head.method !== 'CONNECT') return servePlain(visit, head, bytes, travel);
  visit.by = 'connect';
  const place = readAuthority(head.target);
  if (place === null && isOddAddress(head.target)) return refuse(visit, 403, ODD_ADDRESS);
  if (place === null || place.port === null) return refuse(visit, 400, 'a CONNECT needs one host and one port');
  if (!agrees(head, place.name.host, place.port)) return refuse(visit, 400, 'its Host is not that of the CONNECT');
  const rest = bytes.subarray(head.bytes);
  travel.settled(visit);
  travel.tunnel(visit, place.name, place.port, rest, {
    granted: () => void visit.socket.write(ESTABLISHED),
    refused: (status, sentence) => sayAndClose(visit.socket, httpAnswer(status, sentence)),
  });
}

const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n';

function servePlain(visit: Visit, head: RequestHead, bytes: Buffer, travel: Travel): void {
  visit.by = 'http';
  const match = /^http:\/\/([^/?#]+)([/?].*)?$/i.exec(head.target);
  const place = match === null ? null : readAuthority(match[1] ?? '');
  if (place === null && isOddAddress(match?.[1] ?? '')) return refuse(visit, 403, ODD_ADDRESS);
  if (place === null)
    return refuse(visit, 400, 'this is a proxy: it takes CONNECT, and requests for http:// URLs in full');
  const port = place.port ?? 80;
  // Nothing reaches port 443 of anybody but TLS that names its host.
  if (port === 443) return refuse(visit, 400, 'port 443 is for https');
  if (!agrees(head, place.name.host, port)) return refuse(visit, 400, 'its Host is not that of its URL');
  travel.settled(visit);
  travel.plainHttp(visit, place.name, port, bytes);
}

/** "example.com:443"; no user, no path, no second spelling. */
export function readAuthority(text: string): { name: HostName; port: number | null } | null {
  const match = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d{1,5}))?$/.exec(text);
  const name = match === null ? null : canonicalHost(match[1] ?? '');
  const port = match?.[2] === undefined ? null : Number(match[2]);
  return name === null || port === 0 || (port ?? 0) > 65_535 ? null : { name, port };
}

const ODD_ADDRESS =
  'network policy: an address has to be written as four decimal numbers, and to be allowed as such. Do not look for a way round';

/** 127.1, 2130706433, 0x7f000001, 0177.0.0.1: some take these for addresses, so nobody may. */
function isOddAddress(authority: string): boolean {
  return /^(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d+))*\.?(?::\d+)?$/i.test(authority);
}

function agrees(head: RequestHead, host: string, port: number): boolean {
  const [written] = headerValues(head, 'host');
  // What a CONNECT repeats needs no second look.
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

/** Written down, and said in HTTP. */
export function refuse(visit: Visit, status: number, problem: string): void {
  visit.finish('denied', problem);
  sayAndClose(visit.socket, httpAnswer(status, `ags: ${problem}`));
}

function greet(visit: Visit, bytes: Buffer, travel: Travel): (() => void) | null {
  const { isToken } = travel;
  const greeting = readGreeting(bytes);
  if (greeting.kind === 'more') return null;
  visit.by = 'socks5';
  return () => {
    if (greeting.kind === 'bad' || !(isToken === null ? greeting.withoutPassword : greeting.withPassword)) {
      visit.finish('denied', isToken === null ? 'its SOCKS5 asks for a password, and none is used here' : NO_TOKEN);
      return sayAndClose(visit.socket, SOCKS.noMethod);
    }
    const rest = bytes.subarray(greeting.bytes);
    visit.socket.write(isToken === null ? SOCKS.noPasswordNeeded : SOCKS.passwordNeeded);
    if (isToken === null) serveSocks(visit, rest, travel);
    else checkPassword(visit, rest, isToken, (left) => serveSocks(visit, left, travel));
  };
}

const NO_TOKEN = 'this gateway needs its token as the password of the proxy';

function checkPassword(
  visit: Visit,
  first: Buffer,
  isToken: (given: string) => boolean,
  good: (rest: Buffer) => void,
): void {
  readFirst(visit.socket, first, (bytes) => {
    const given = readPassword(bytes);
    if (given.kind === 'more') return null;
    if (given.kind === 'password' && isToken(given.password))
      return () => {
        visit.socket.write(SOCKS.passwordGood);
        good(bytes.subarray(given.bytes));
      };
    return () => {
      visit.finish('denied', NO_TOKEN);
      sayAndClose(visit.socket, SOCKS.passwordBad);
    };
  });
}

function serveSocks(visit: Visit, first: Buffer, travel: Travel): void {
  readFirst(visit.socket, first, (bytes) => {
    const request = readSocksRequest(bytes);
    if (request.kind === 'more') return null;
    if (request.kind === 'bad')
      return () => {
        visit.finish('denied', 'its SOCKS5 request is not a CONNECT to one host and port');
        sayAndClose(visit.socket, socksReply(request.reply));
      };
    return () => {
      travel.settled(visit);
      travel.tunnel(visit, request.host, request.port, bytes.subarray(request.bytes), {
        granted: () => void visit.socket.write(socksReply(SOCKS.granted)),
        refused: (status) =>
          sayAndClose(visit.socket, socksReply(status === 403 ? SOCKS.notAllowed : SOCKS.unreachable)),
      });
    };
  });
}
