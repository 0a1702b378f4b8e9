// gateway/intercept/response-head.ts: parses the head of an HTTP/1 response.
// Invariant: as for requests, a response is refused if its end is ambiguous.
import {
  bad,
  type Field,
  findHeadEnd,
  type Framing,
  type HeadResult,
  isKept,
  lineEnd,
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

/** Responses below 200 are interim: the caller reads on. */
export function readResponseHead(bytes: Buffer, requestMethod: string, seen = 0): HeadResult<ResponseHead> {
  const end = findHeadEnd(bytes, seen);
  if (end === null) return { kind: 'more' };
  if (typeof end !== 'number') return end;
  const text = bytes.toString('latin1', 0, end - 4);
  const firstEnd = lineEnd(text, 0);
  const line = LINE.exec(text.slice(0, firstEnd));
  if (line === null) return bad('its first line is not that of a response');
  const headers = readFields(text, firstEnd + 2);
  if ('kind' in headers) return headers;
  const version = line[1] === '1' ? '1.1' : '1.0';
  const framing = readFraming(withPlainCoding(headers), version);
  if (framing?.kind === 'bad') return framing;
  const status = Number(line[2]);
  const bare = requestMethod === 'HEAD' || status < 200 || status === 204 || status === 304;
  const body: Framing = bare ? { kind: 'none' } : (framing ?? { kind: 'until-close' });
  const keepAlive = body.kind !== 'until-close' && isKept(headers, version);
  return { kind: 'head', head: { status, reason: line[3] ?? '', version, headers, bytes: end, body, keepAlive } };
}

// Servers also write "Chunked"; the lower-case form leaves no other reading.
function withPlainCoding(headers: readonly Field[]): readonly Field[] {
  if (!headers.some(isCoding)) return headers;
  return headers.map((field) => (isCoding(field) ? [field[0], field[1].toLowerCase()] : field));
}

function isCoding([name]: Field): boolean {
  return name.length === 17 && name.toLowerCase() === 'transfer-encoding';
}
