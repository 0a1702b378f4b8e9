// lib/stream/socket-pair.ts: pairs of connected sockets. Node has no socketpair(2), so a listener that only this user can reach connects
// them.
import { closeSync, constants, openSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';

export interface SocketPairs {
  pair(): Promise<readonly [Socket, Socket]>;
  close(): void;
}

const PATIENCE_MS = 5000;

/** `directory` must be closed to other users. */
export function openPairs(directory: string, name: string): SocketPairs {
  const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  // A socket path has at most 107 characters.
  const path = `/proc/self/fd/${fd}/${name}`;
  rmSync(path, { force: true });
  const arrived: ((socket: Socket) => void)[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const expected = arrived.shift();
    if (expected === undefined) socket.destroy();
    else expected(socket);
  });
  const ready = new Promise<void>((resolve, reject) => {
    server.on('error', reject);
    server.listen(path, resolve);
  });
  ready.catch(() => undefined);
  server.unref();
  // One at a time, so that each gets its own other end.
  let last: Promise<unknown> = ready;
  const make = async (): Promise<readonly [Socket, Socket]> => {
    await ready;
    const one = connect({ path, allowHalfOpen: true });
    let expected: (socket: Socket) => void = () => undefined;
    const other = new Promise<Socket>((resolve, reject) => {
      arrived.push((expected = resolve));
      // Without free descriptors no connection arrives.
      one
        .once('error', reject)
        .setTimeout(PATIENCE_MS, () => one.destroy(new Error('the other end was not connected in time')));
    });
    try {
      const ends = [one, await other] as const;
      one.setTimeout(0).removeAllListeners('timeout').removeAllListeners('error');
      return ends;
    } catch (error) {
      arrived.splice(arrived.indexOf(expected), 1);
      one.destroy();
      throw error;
    }
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
