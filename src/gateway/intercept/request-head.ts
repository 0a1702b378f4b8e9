// gateway/intercept/request-head.ts: parses the head of an HTTP/1 request. Strict: an agent writes these bytes, and the server
// behind the gateway must not be able to read them differently.
// Invariant: a head is accepted only if every byte is understood. Pure: no state between calls.
import {
  type Bad,
  bad,
  type Field,
  findHeadEnd,
  type Framing,
  type HeadResult,
  isKept,
  lineEnd,
  listOf,
  readFields,
  readFraming,
  valuesOf,
} from './head.ts';

export type { Framing, HeadResult } from './head.ts';

export interface RequestHead {
  readonly method: string;
  readonly target: string;
  readonly version: '1.0' | '1.1';
  readonly headers: readonly Field[];
  /** Length of the head with its blank line. */
  readonly bytes: number;
  readonly body: Framing;
  readonly keepAlive: boolean;
  /** Lower case; null without `Connection: upgrade`. */
  readonly upgrade: string | null;
}

const MAX_TARGET_BYTES = 32_768;
const LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP\/([0-9]\.[0-9])$/;

/** `seen`: how many bytes an earlier call has searched, so a slow head is not searched from its start each time. */
export function readRequestHead(bytes: Buffer, seen = 0): HeadResult<RequestHead> {
  if (bytes.length === 0) return { kind: 'more' };
  // TLS, SOCKS and the like are recognised without waiting for a line break.
  if (!isTokenByte(bytes[0] ?? 0)) return bad('it does not begin with a method');
  const end = findHeadEnd(bytes, seen);
  if (end === null) return { kind: 'more' };
  if (typeof end !== 'number') return end.status === 431 && isTargetTooLong(bytes) ? targetTooLong() : end;
  const text = bytes.toString('latin1', 0, end - 4);
  const firstEnd = lineEnd(text, 0);
  const line = LINE.exec(text.slice(0, firstEnd));
  if (line === null) return bad('its first line is not that of a request');
  const [method, target, version] = [line[1] ?? '', line[2] ?? '', line[3] ?? ''];
  if (version !== '1.1' && version !== '1.0') return bad('its version of HTTP is not spoken here', 505);
  if (target.length > MAX_TARGET_BYTES) return targetTooLong();
  const headers = readFields(text, firstEnd + 2);
  if ('kind' in headers) return headers;
  return complete(method, target, version, headers, end);
}

function complete(
  method: string,
  target: string,
  version: '1.0' | '1.1',
  headers: readonly Field[],
  bytes: number,
): HeadResult<RequestHead> {
  const hosts = valuesOf(headers, 'host').length;
  if (hosts > 1) return bad('it has more than one Host');
  if (hosts === 0 && version === '1.1') return bad('it has no Host');
  const body = readFraming(headers, version) ?? { kind: 'none' };
  if (body.kind === 'bad') return body;
  // The tunnel's bytes follow a CONNECT; a length would make parsers disagree about where they begin.
  if (method === 'CONNECT' && (body.kind === 'chunked' || (body.kind === 'length' && body.bytes > 0))) {
    return bad('a CONNECT has a body');
  }
  const keepAlive = isKept(headers, version);
  return {
    kind: 'head',
    head: { method, target, version, headers, bytes, body, keepAlive, upgrade: upgradeOf(headers) },
  };
}

function upgradeOf(headers: readonly Field[]): string | null {
  const [wanted] = valuesOf(headers, 'upgrade');
  return wanted !== undefined && listOf(headers, 'connection').includes('upgrade') ? wanted.toLowerCase() : null;
}

export function headerValues(head: { readonly headers: readonly Field[] }, lowerCaseName: string): string[] {
  return valuesOf(head.headers, lowerCaseName);
}

function isTargetTooLong(bytes: Buffer): boolean {
  const start = bytes.indexOf(' ') + 1;
  const end = bytes.indexOf(' ', start);
  return start > 0 && (end === -1 || end - start > MAX_TARGET_BYTES);
}

function targetTooLong(): Bad {
  return bad('its target is too long', 414);
}

function isTokenByte(byte: number): boolean {
  return (
    (byte >= 65 && byte <= 90) ||
    (byte >= 97 && byte <= 122) ||
    (byte < 127 && "!#$%&'*+-.^_`|~0123456789".includes(String.fromCharCode(byte)))
  );
}
