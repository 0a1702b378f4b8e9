// gateway/intercept/byte-source.ts: a socket as something to read from piece by piece and to write to without piling up.
// Invariant: while nobody reads, at most one piece waits here; the rest stays in the kernel, and so the sender waits.
import type { Socket } from 'node:net';
import type { HeadResult } from './head.ts';

export interface Source {
  /** The next bytes, at once if they are here; null: no more will come. */
  read(): Buffer | null | Promise<Buffer | null>;
  /** Puts bytes back, to be read next. */
  unread(bytes: Buffer): void;
  /** From now on whatever comes is thrown away, and nobody reads. */
  discard(): void;
  /** Something could be read at once. */
  readonly waiting: boolean;
  /** `open`, `ended` by the other side in due form, or `broken`. */
  readonly state: 'open' | 'ended' | 'broken';
}

/** `first`: what has been read from it already. */
export function createSource(socket: Socket, first?: Buffer): Source {
  const queue: Buffer[] = first === undefined || first.length === 0 ? [] : [first];
  // A socket tells its end also while it is paused, and then nobody was here to listen.
  let state: Source['state'] = socket.readableEnded ? 'ended' : 'open';
  let wake: ((bytes: Buffer | null) => void) | null = null;
  let discarding = false;

  function settle(bytes: Buffer | null): void {
    const waiter = wake;
    wake = null;
    waiter?.(bytes);
  }

  socket.on('data', (chunk: Buffer) => {
    if (discarding) return;
    if (wake !== null) return settle(chunk);
    queue.push(chunk);
    socket.pause();
  });
  socket.on('end', () => {
    if (state === 'open') state = 'ended';
    settle(null);
  });
  // What went wrong is told by the state; 'close' follows.
  socket.on('error', () => (state = 'broken'));
  socket.on('close', () => {
    if (state === 'open') state = 'broken';
    settle(null);
  });

  return {
    read() {
      const next = queue.shift();
      // Reading goes on behind it, or the end of an idle connection would not be noticed.
      if (queue.length === 0 && socket.isPaused()) socket.resume();
      if (next !== undefined) return next;
      if (state !== 'open' || discarding) return null;
      return new Promise((resolve) => (wake = resolve));
    },
    unread(bytes) {
      if (bytes.length > 0) queue.unshift(bytes);
    },
    discard() {
      discarding = true;
      queue.length = 0;
      settle(null);
      socket.resume();
    },
    get waiting() {
      return queue.length > 0;
    },
    get state() {
      return state;
    },
  };
}

/** Resolves when there is room again; false: the other side is gone. */
export function send(socket: Socket, bytes: Buffer): boolean | Promise<boolean> {
  if (!socket.writable) return false;
  if (bytes.length === 0 || socket.write(bytes)) return true;
  return new Promise((resolve) => {
    const settle = (): void => {
      socket.off('drain', settle).off('close', settle);
      resolve(!socket.destroyed);
    };
    socket.on('drain', settle).on('close', settle);
  });
}

export type ReadHead<T> = { readonly kind: 'head'; readonly head: T } | Extract<HeadResult<T>, { kind: 'bad' }> | null;

/** Reads until `parse` is content; what follows the head stays to be read. Null: the end came first. */
export async function readHead<T extends { readonly bytes: number }>(
  source: Source,
  parse: (bytes: Buffer, seen: number) => HeadResult<T>,
  onFirst?: () => void,
): Promise<ReadHead<T>> {
  // Here and elsewhere: to wait for what is there already would cost each request a turn.
  const first = source.read();
  let bytes = first instanceof Promise ? await first : first;
  if (bytes === null) return null;
  let result = parse(bytes, 0);
  if (result.kind === 'more') onFirst?.();
  while (result.kind === 'more') {
    const more = await source.read();
    if (more === null) return null;
    const seen = bytes.length;
    bytes = Buffer.concat([bytes, more]);
    result = parse(bytes, seen);
  }
  if (result.kind === 'head') source.unread(bytes.subarray(result.head.bytes));
  return result;
}
