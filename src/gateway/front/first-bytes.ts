// gateway/front/first-bytes.ts: read from a socket until there is enough to decide, and no byte more.
// Invariant: a client that ends before that is closed.
import type { Socket } from 'node:net';

/**
 * `look` gets all bytes so far and how many of them it has seen before. It returns null if it needs more, otherwise the next step,
 * which is called with the socket paused.
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
    socket.off('end', onEnd);
    socket.pause();
    goOn();
  };
  const onEnd = (): void => void socket.destroy();
  // The socket may have ended while it was paused.
  if (socket.readableEnded) return onEnd();
  socket.on('data', onData);
  socket.on('end', onEnd);
  socket.resume();
}
