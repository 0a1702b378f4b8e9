// lib/socket-pair.ts: two sockets that are joined, as socketpair(2) makes them, which Node cannot: by a listener that only this user can reach.
import { closeSync, constants, openSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';

export interface SocketPairs {
  pair(): Promise<readonly [Socket, Socket]>;
  close(): void;
}

/** `directory` keeps others out. */
export function openPairs(directory: string, name: string): SocketPairs {
  const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  // A path to a socket may have 107 characters.
  const path = `/proc/self/fd/${fd}/${name}`;
  rmSync(path, { force: true });
  const arrived: ((socket: Socket) => void)[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const expected = arrived.shift();
    if (expected === undefined) socket.destroy();
    else expected(socket);
  });
  const ready = new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  ready.catch(() => undefined);
  server.unref();
  // One after the other, so that each finds its own other end.
  let last: Promise<unknown> = ready;
  const make = async (): Promise<readonly [Socket, Socket]> => {
    await ready;
    const other = new Promise<Socket>((resolve) => arrived.push(resolve));
    const one = connect({ path, allowHalfOpen: true });
    await new Promise<void>((resolve, reject) => one.once('connect', resolve).once('error', reject));
    return [one, await other];
  };
  return {
    pair() {
      const made = last.then(make, make);
      last = made.catch(() => undefined);
      return made;
    },
    close: () => void server.close(() => closeSync(fd)),
  };
}
