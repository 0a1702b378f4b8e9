// lib/stream/frames.ts: typed messages on one stream: a letter, a length, and a payload. Used between an attached terminal and the
// runner, and between the runner and the host program inside a sandbox (sandbox/io/inside-host.ts).
// Invariant: a frame that is too long ends the reading; only the current frame is kept.

/** d: data. r: error output. s: the other side stops sending data (0), or goes on (1). w: window size. e: end of input. h: hang up. x: exit code. */
export type FrameKind = 'd' | 'r' | 's' | 'w' | 'e' | 'h' | 'x';

export function frame(kind: FrameKind, payload: Uint8Array = EMPTY): Buffer {
  const head = Buffer.alloc(HEAD);
  head.write(kind, 0, 'latin1');
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
}

export function windowFrame(columns: number, rows: number): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt16BE(Math.min(columns, 0xffff), 0);
  size.writeUInt16BE(Math.min(rows, 0xffff), 2);
  return frame('w', size);
}

/** Takes arbitrary chunks. False: the input is not a frame, and nothing after it can be read. */
export function createFrameReader(onFrame: (kind: FrameKind, payload: Buffer) => void): (chunk: Buffer) => boolean {
  let held: Buffer = EMPTY;
  return (chunk) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    while (held.length >= HEAD) {
      const kind = String.fromCharCode(held[0] ?? 0);
      const length = held.readUInt32BE(1);
      if (!KINDS.includes(kind) || length > MAX_BYTES) return false;
      if (held.length < HEAD + length) break;
      onFrame(kind as FrameKind, held.subarray(HEAD, HEAD + length));
      held = held.subarray(HEAD + length);
    }
    return true;
  };
}

const HEAD = 5;
const KINDS = 'drswehx';
const MAX_BYTES = 2 ** 20;
const EMPTY = Buffer.alloc(0);
