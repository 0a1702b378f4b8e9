// network/listen.ts: listen at an address, or at a Unix socket that only its owner may connect to.
// Invariant: a socket that answers is never removed; one that a killed process left behind is.
import { rmSync, statSync } from 'node:fs';
import { connect, type Server } from 'node:net';
import { AgsError } from '../protocol/errors.ts';
import { tryLock } from '../lib/process/lock.ts';

/** `127.0.0.1:3128`, `[::1]:3128` or `unix:/path`. */
export async function listenAt(place: string, server: Server): Promise<Disposable> {
  if (!place.startsWith('unix:')) {
    const [, host = '', port = ''] = /^\[?([^\]]*)\]?:(\d+)$/.exec(place) ?? [];
    await bind(server, place, () => server.listen({ host, port: Number(port), backlog: BACKLOG }));
    return { [Symbol.dispose]: () => void server.close() };
  }
  const path = place.slice('unix:'.length);
  const lock = claim(path);
  try {
    await removeStale(path);
    await bind(server, place, () => {
      // The socket must not be open to others even for a moment.
      const before = process.umask(0o177);
      try {
        server.listen({ path, backlog: BACKLOG });
      } finally {
        process.umask(before);
      }
    });
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
  return {
    [Symbol.dispose]() {
      // This also removes the socket's file. The owner of the server ends its connections.
      server.close();
      lock[Symbol.dispose]();
    },
  };
}

const BACKLOG = 4096;

function bind(server: Server, place: string, listen: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(new AgsError('config.invalid', `ags cannot listen at ${place}: ${cause.message}`, { cause })),
    );
    // Later errors concern a single connection that could not be accepted.
    server.once('listening', () => {
      server.on('error', () => undefined);
      resolve();
    });
    listen();
  });
}

/** Two processes that start at the same time must not both find the socket stale. */
function claim(path: string): Disposable {
  try {
    const lock = tryLock(`${path}.lock`);
    if (lock !== null) return lock;
  } catch (cause) {
    throw new AgsError('config.invalid', `ags cannot listen at unix:${path}: ${String((cause as Error).message)}`, {
      cause,
    });
  }
  throw alreadyListening(path);
}

/** Connects, because a process in another container cannot be seen from here, but answers. */
async function removeStale(path: string): Promise<void> {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isSocket()) throw new AgsError('config.invalid', `${path} exists and is not a socket.`);
  const answered = await new Promise<boolean>((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
  if (answered) throw alreadyListening(path);
  rmSync(path, { force: true });
}

function alreadyListening(path: string): AgsError {
  return new AgsError('task.busy', `Another gateway already listens at ${path}.`, {
    hint: `Check it: ags gateway check --socket ${path}`,
  });
}
