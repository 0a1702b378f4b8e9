// gateway/first-bytes.ts: read from a socket until there is enough to decide, and then not a byte more.
import type { Socket } from 'node:net';

/**
 * `look` gets everything so far, and how much of it it has seen before. null: more is needed; otherwise what to do now,
 * with the socket paused.
 */
export function readFirst(
  socket: Socket,
  before: Buffer,
  look: (bytes: Buffer, seen: number) => (() => void) | null,
): void {
  const next = before.length > 0 ? look(before, 0) : null;
  if (next !== null) return next();
  let bytes = before;
  const onData = (chunk: Buffer): void => {
    const seen = bytes.length;
    bytes = seen === 0 ? chunk : Buffer.concat([bytes, chunk]);
    const goOn = look(bytes, seen);
    if (goOn === null) return;
    socket.off('data', onData);
    socket.pause();
    goOn();
  };
  socket.on('data', onData);
  socket.resume();
}
