// gateway/response-head.ts: the head of an HTTP/1 response, from bytes to a value.
// Invariant: as for requests, nothing is accepted whose end could be taken to be somewhere else.
import {
  bad,
  type Field,
  findHeadEnd,
  type Framing,
  type HeadResult,
  isKept,
  readFields,
  readFraming,
} from './head.ts';

export interface ResponseHead {
  readonly status: number;
  readonly reason: string;
  readonly version: '1.0' | '1.1';
  readonly headers: readonly Field[];
  /** Length of the head with its blank line. */
  readonly bytes: number;
  readonly body: Framing;
  readonly keepAlive: boolean;
}

// eslint-disable-next-line no-control-regex
const LINE = /^HTTP\/1\.([01]) ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?$/;

/** Responses below 200 come before another one: the caller reads on. */
export function readResponseHead(bytes: Buffer, requestMethod: string, seen = 0): HeadResult<ResponseHead> {
  const end = findHeadEnd(bytes, seen);
  if (end === null) return { kind: 'more' };
  if (typeof end !== 'number') return end;
  const lines = bytes.toString('latin1', 0, end - 4).split('\r\n');
  const [, minor, digits, reason = ''] = LINE.exec(lines[0] ?? '') ?? [];
  if (minor === undefined) return bad('its first line is not that of a response');
  const headers = readFields(lines);
  if ('kind' in headers) return headers;
  const version = minor === '1' ? '1.1' : '1.0';
  const framing = readFraming(withPlainCoding(headers), version);
  if (framing?.kind === 'bad') return framing;
  const status = Number(digits);
  const bare = requestMethod === 'HEAD' || status < 200 || status === 204 || status === 304;
  const body: Framing = bare ? { kind: 'none' } : (framing ?? { kind: 'until-close' });
  const keepAlive = body.kind !== 'until-close' && isKept(headers, version);
  return { kind: 'head', head: { status, reason, version, headers, bytes: end, body, keepAlive } };
}

// Servers write "Chunked" too; what they write is not forwarded by anybody who could take it for something else.
function withPlainCoding(headers: readonly Field[]): readonly Field[] {
  return headers.map((field) =>
    field[0].length === 17 && field[0].toLowerCase() === 'transfer-encoding'
      ? [field[0], field[1].toLowerCase()]
      : field,
  );
}
