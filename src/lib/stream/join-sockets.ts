// lib/stream/join-sockets.ts: connects two sockets in both directions; the end of one direction does not end the other.
import type { Socket } from 'node:net';

/** Both sockets must have `allowHalfOpen`. */
export function joinSockets(one: Socket, other: Socket): void {
  for (const socket of [one, other]) socket.on('error', () => undefined);
  one.pipe(other).pipe(one);
  one.on('close', () => other.destroy());
  other.on('close', () => one.destroy());
}
