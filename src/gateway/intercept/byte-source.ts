// gateway/intercept/byte-source.ts: reads a socket chunk by chunk, and writes to one with back-pressure.
// Invariant: at most one unread chunk is buffered here; the rest stays in the kernel, so the sender waits.
import type { Socket } from 'node:net';
import type { HeadResult } from './head.ts';

export interface Source {
  /** The next bytes, at once if they are here; null: the stream is over. */
  read(): Buffer | null | Promise<Buffer | null>;
  /** Puts bytes back for the next read. */
  unread(bytes: Buffer): void;
  /** From now on discards everything that arrives. */
  discard(): void;
  /** True if a read would return at once. */
  readonly waiting: boolean;
  /** `open`, `ended` regularly by the other side, or `broken`. */
  readonly state: 'open' | 'ended' | 'broken';
}

/** `first`: bytes that were already read from the socket. */
export function createSource(socket: Socket, first?: Buffer): Source {
  const queue: Buffer[] = first === undefined || first.length === 0 ? [] : [first];
  // A socket can end while it is paused, before these listeners existed.
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
  // The state tells that it failed; 'close' follows.
  socket.on('error', () => (state = 'broken'));
  socket.on('close', () => {
    if (state === 'open') state = 'broken';
    settle(null);
  });

  return {
    read() {
      const next = queue.shift();
      // Keep reading in the background, or the end of an idle connection would go unnoticed.
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

/** Reads until `parse` has a whole head and puts the rest back. null: the stream ended first. */
export async function readHead<T extends { readonly bytes: number }>(
  source: Source,
  parse: (bytes: Buffer, seen: number) => HeadResult<T>,
  onFirst?: () => void,
): Promise<ReadHead<T>> {
  // Here and elsewhere, bytes that are already here are not awaited: that would cost each request a turn of the event loop.
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
