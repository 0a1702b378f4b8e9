// lib/stream/join-sockets.ts: what comes out of one socket goes into the other, both ways; the end of one direction is not that of the other.
import type { Socket } from 'node:net';

/** Both with `allowHalfOpen`. */
export function joinSockets(one: Socket, other: Socket): void {
  for (const socket of [one, other]) socket.on('error', () => undefined);
  one.pipe(other).pipe(one);
  one.on('close', () => other.destroy());
  other.on('close', () => one.destroy());
}
