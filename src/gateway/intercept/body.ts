// gateway/intercept/body.ts: finds the end of a message body while its bytes pass. It keeps no data.
// Invariant: a byte belongs to exactly one message.
import { type Framing, readFields, valuesOf } from './head.ts';

export interface Taken {
  /** The bytes of this body, framing included, to be forwarded unchanged. */
  readonly used: Buffer;
  /** The same without the framing. */
  readonly data: readonly Buffer[];
  readonly rest: Buffer;
  readonly done: boolean;
}

export interface Body {
  take(chunk: Buffer): Taken | { readonly bad: string };
}

const EMPTY = Buffer.alloc(0);

export function createBody(framing: Framing): Body {
  switch (framing.kind) {
    case 'none':
      return { take: (chunk) => ({ used: EMPTY, data: [], rest: chunk, done: true }) };
    case 'length':
      return createCounted(framing.bytes);
    case 'chunked':
      return createChunked();
    case 'until-close':
      return { take: (chunk) => ({ used: chunk, data: [chunk], rest: EMPTY, done: false }) };
  }
}

function createCounted(bytes: number): Body {
  let left = bytes;
  return {
    take(chunk) {
      const used = chunk.length <= left ? chunk : chunk.subarray(0, left);
      left -= used.length;
      return { used, data: [used], rest: chunk.subarray(used.length), done: left === 0 };
    },
  };
}

const CR = 13;
const LF = 10;
/** No real chunk has more than 2^48 bytes; more digits are an overflow attack. */
const MAX_SIZE_DIGITS = 12;
const MAX_TRAILER_BYTES = 8192;

// Chunk extensions are refused: no client needs them, and parsers disagree about where they end.
function createChunked(): Body {
  let state: 'size' | 'size-lf' | 'data' | 'data-cr' | 'data-lf' | 'trailer' = 'size';
  let digits = '';
  let left = 0;
  let trailer = '';

  function take(chunk: Buffer): Taken | { bad: string } {
    const data: Buffer[] = [];
    let at = 0;
    while (at < chunk.length) {
      if (state === 'data') {
        const end = Math.min(chunk.length, at + left);
        data.push(chunk.subarray(at, end));
        left -= end - at;
        at = end;
        if (left === 0) state = 'data-cr';
        continue;
      }
      const problem = step(chunk[at] ?? 0);
      at += 1;
      if (problem === null) continue;
      if (problem !== 'done') return { bad: problem };
      return { used: chunk.subarray(0, at), data, rest: chunk.subarray(at), done: true };
    }
    return { used: chunk, data, rest: EMPTY, done: false };
  }

  /** Reads one byte of framing. null: more follows; 'done'; otherwise the problem. */
  function step(byte: number): string | null {
    switch (state) {
      case 'size':
        if (byte === CR && digits !== '') state = 'size-lf';
        else if (isHexDigit(byte) && digits.length < MAX_SIZE_DIGITS) digits += String.fromCharCode(byte);
        else return 'the size of a chunk is not a plain number';
        return null;
      case 'size-lf':
        if (byte !== LF) return 'the size of a chunk does not end in CR LF';
        left = Number.parseInt(digits, 16);
        digits = '';
        state = left === 0 ? 'trailer' : 'data';
        return null;
      case 'data-cr':
        if (byte !== CR) return 'a chunk is longer than its size';
        state = 'data-lf';
        return null;
      case 'data-lf':
        if (byte !== LF) return 'a chunk does not end in CR LF';
        state = 'size';
        return null;
      case 'trailer':
        trailer += String.fromCharCode(byte);
        if (trailer.length > MAX_TRAILER_BYTES) return 'its trailer is too long';
        if (byte !== LF) return null;
        if (trailer === '\r\n') return 'done';
        if (!trailer.endsWith('\r\n')) return 'a line of its trailer ends without CR';
        return trailer.endsWith('\r\n\r\n') ? (trailerProblem(trailer) ?? 'done') : null;
      case 'data':
        return 'data is not framing';
    }
  }

  return { take };
}

// Some servers merge trailers into the headers, so a trailer must not change what the request means.
function trailerProblem(text: string): string | null {
  const fields = readFields(text.slice(0, -4), 0);
  if ('kind' in fields) return 'its trailer has a field that is not understood';
  const moved = ['content-length', 'transfer-encoding', 'host'].some((name) => valuesOf(fields, name).length > 0);
  return moved ? 'its trailer has a field that belongs into a head' : null;
}

function isHexDigit(byte: number): boolean {
  return (byte >= 48 && byte <= 57) || (byte >= 65 && byte <= 70) || (byte >= 97 && byte <= 102);
}
