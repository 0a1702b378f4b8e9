// lib/stream/lines.ts: splits a stream of arbitrary chunks into lines.
// Invariant: at most `maxBytes` of a line are kept; the rest is dropped and counted.

export function createLines(maxBytes: number, onLine: (line: string, droppedBytes: number) => void): LineSplitter {
  let held: Buffer[] = [];
  let length = 0;
  let dropped = 0;
  const take = (piece: Buffer): void => {
    const room = Math.max(0, maxBytes - length);
    if (piece.length > room) dropped += piece.length - room;
    if (room > 0 && piece.length > 0) held.push(piece.length > room ? piece.subarray(0, room) : piece);
    length += Math.min(piece.length, room);
  };
  const finish = (): void => {
    const bytes = held.length === 1 ? (held[0] as Buffer) : Buffer.concat(held);
    const text = bytes.toString('utf8');
    onLine(text.endsWith('\r') ? text.slice(0, -1) : text, dropped);
    held = [];
    length = 0;
    dropped = 0;
  };
  return {
    push(chunk) {
      let start = 0;
      for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
        take(chunk.subarray(start, end));
        finish();
        start = end + 1;
      }
      // A copy, because the caller may reuse the chunk's memory.
      if (start < chunk.length) take(Buffer.from(chunk.subarray(start)));
    },
    end() {
      if (length + dropped > 0) finish();
    },
  };
}

export interface LineSplitter {
  push(chunk: Buffer): void;
  /** Reports a last line without a line feed. */
  end(): void;
}

const LF = 0x0a;
