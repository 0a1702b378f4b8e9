// gateway/intercept/head.ts: the common parts of request and response heads: end, fields, framing.
// Invariant: input that two HTTP parsers could read differently is refused, never repaired.
// Problems are parts of sentences of ours; none contains received text.

export type Field = readonly [name: string, value: string];

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  /** Only for responses. */
  | { readonly kind: 'until-close' };

export interface Bad {
  readonly kind: 'bad';
  readonly status: 400 | 414 | 431 | 501 | 505;
  readonly problem: string;
}

export type HeadResult<T> = { readonly kind: 'head'; readonly head: T } | { readonly kind: 'more' } | Bad;

export const MAX_HEAD_BYTES = 65_536;
const MAX_FIELDS = 200;
const LF = 10;
const CR = 13;

/** The length of the head with its blank line; null: incomplete. The first `seen` bytes were searched before. */
export function findHeadEnd(bytes: Buffer, seen: number): number | null | Bad {
  for (let at = bytes.indexOf(LF, seen); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    if (at >= MAX_HEAD_BYTES) break;
    if (bytes[at - 1] !== CR) return bad('a line ends without CR');
    if (at === 1) return bad('it begins with an empty line');
    if (bytes[at - 2] === LF) return at + 1;
  }
  return bytes.length < MAX_HEAD_BYTES ? null : bad('its head is too long', 431);
}

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// eslint-disable-next-line no-control-regex
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** The end of the line that begins at `from`. */
export function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\r\n', from);
  return end === -1 ? text.length : end;
}

/** Reads the header lines from `from` on; the last one has no line break. */
export function readFields(text: string, from: number): readonly Field[] | Bad {
  const fields: Field[] = [];
  for (let at = from, end = 0; at < text.length; at = end + 2) {
    end = lineEnd(text, at);
    if (fields.length === MAX_FIELDS) return bad('it has too many header fields', 431);
    const colon = text.indexOf(':', at);
    const name = text.slice(at, Math.max(at, colon));
    // The name pattern also refuses a folded line, which begins with a space, and a line whose colon is on another line.
    if (!NAME.test(name)) return bad('a header field has no proper name');
    const value = trim(text, colon + 1, end);
    if (!VALUE.test(value)) return bad('a header field has a control character');
    fields.push([name, value]);
  }
  return fields;
}

// Only spaces and tabs: String.trim would remove U+00A0, which is an ordinary byte here.
function trim(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9;
}

/** The framing that the fields declare; null: none. */
export function readFraming(fields: readonly Field[], version: '1.0' | '1.1'): Framing | null | Bad {
  const lengths = valuesOf(fields, 'content-length');
  const codings = valuesOf(fields, 'transfer-encoding');
  if (codings.length > 0) {
    if (lengths.length > 0) return bad('it has both a Content-Length and a Transfer-Encoding');
    if (version === '1.0') return bad('it has a Transfer-Encoding in HTTP/1.0');
    if (codings.length > 1 || codings[0] !== 'chunked') return bad('its Transfer-Encoding is not "chunked"');
    return { kind: 'chunked' };
  }
  const [length] = lengths;
  if (length === undefined) return null;
  if (lengths.length > 1) return bad('it has more than one Content-Length');
  if (!/^[0-9]{1,16}$/.test(length) || !Number.isSafeInteger(Number(length))) {
    return bad('its Content-Length is not a number');
  }
  return { kind: 'length', bytes: Number(length) };
}

/** The values of every field of that name, in order. */
export function valuesOf(fields: readonly Field[], lowerCaseName: string): string[] {
  const values: string[] = [];
  for (const [name, value] of fields) {
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) values.push(value);
  }
  return values;
}

/** The elements of a list such as `Connection: keep-alive, Upgrade`, in lower case. */
export function listOf(fields: readonly Field[], lowerCaseName: string): string[] {
  const items: string[] = [];
  for (const value of valuesOf(fields, lowerCaseName)) {
    for (const item of value.split(',')) items.push(trim(item, 0, item.length).toLowerCase());
  }
  return items;
}

export function isKept(fields: readonly Field[], version: '1.0' | '1.1'): boolean {
  const options = listOf(fields, 'connection');
  if (options.includes('close')) return false;
  return version === '1.1' || options.includes('keep-alive');
}

export function bad(problem: string, status: Bad['status'] = 400): Bad {
  return { kind: 'bad', status, problem };
}
