// gateway/front/relay.ts: relays bytes between two sockets, both ways, as fast as Node can.
// Invariants: bytes are read only as fast as they are written (a slow reader slows the writer, memory does not grow); the end of
// one direction is forwarded and leaves the other open; bytes are counted before they leave.
import type { Socket } from 'node:net';
import { giveBuffer, letGo, type Sink, takeBytes } from './own-buffer.ts';

export interface Counter {
  /** False: the budget is spent, so the connection ends. */
  out(bytes: number): boolean;
  in(bytes: number): void;
}

const HALF_CLOSED_MS = 120_000;
/** Time for the last bytes to a peer that does not read. */
const FAREWELL_MS = 60_000;
/** From here on a buffer of its own pays off. */
const MANY_BYTES = 262_144;
const NOTHING: Buffer = Buffer.alloc(0);

/** `done` is called once, when both sockets are closed. */
export function relay(input: {
  readonly client: Socket;
  readonly origin: Socket;
  /** Bytes that were already read, from the client and from the origin. */
  readonly fromClient: Buffer;
  readonly fromOrigin: Buffer;
  readonly counter: Counter;
  /** Gets all bytes of the client so far, until it returns 'go' or 'end'. */
  readonly firstWords: ((bytes: Buffer) => 'more' | 'go' | 'end') | null;
  readonly done: () => void;
  /** How long both sides may be silent once one of them has ended. */
  readonly halfClosedMs?: number;
  /** How to read a client that sends much. */
  readonly giveBuffer?: typeof giveBuffer;
}): void {
  const { client, origin, counter } = input;
  const end = (): void => {
    client.destroy();
    origin.destroy();
  };
  let { firstWords } = input;
  let held = NOTHING;
  const hear = (chunk: Buffer): boolean => {
    if (firstWords === null) return sendOut(chunk);
    // Copied, because the chunk's buffer is reused.
    held = Buffer.concat([held, chunk]);
    const answer = firstWords(held);
    if (answer === 'more') return true;
    if (answer === 'end') return stop();
    firstWords = null;
    const all = held;
    held = NOTHING;
    return sendOut(all);
  };
  const stop = (): false => {
    end();
    return false;
  };
  const toOrigin = createWriter(client, origin);
  const toClient = createWriter(origin, client);
  const sendOut = (chunk: Buffer): boolean => (counter.out(chunk.length) ? toOrigin(chunk) : stop());
  const sendIn = (chunk: Buffer): boolean => {
    counter.in(chunk.length);
    return toClient(chunk);
  };
  const closed = (): void => {
    if (!client.closed || !origin.closed) {
      const [first, other] = client.closed ? [client, origin] : [origin, client];
      // The first socket finished in order; give the other one time to receive its remaining bytes.
      if (!first.readableEnded || !first.writableFinished) return end();
      return void other.setTimeout(FAREWELL_MS, end);
    }
    letGo(client);
    letGo(origin);
    input.done();
  };
  if (client.closed || origin.closed) {
    end();
    return client.closed && origin.closed ? closed() : void (client.closed ? origin : client).on('close', closed);
  }
  client.on('close', closed);
  origin.on('close', closed);
  // A side that has ended may still read, or it may be gone: limit the silence from here on.
  const passEnd = (from: Socket, to: Socket): void => {
    to.end();
    from.setTimeout(input.halfClosedMs ?? HALF_CLOSED_MS, end);
  };
  client.on('end', () => passEnd(client, origin));
  origin.on('end', () => passEnd(origin, client));
  begin(origin, input.fromOrigin, sendIn, input.giveBuffer);
  begin(client, input.fromClient, hear, input.giveBuffer);
  // A socket can end while it is paused, before these listeners existed.
  if (client.readableEnded) passEnd(client, origin);
  if (origin.readableEnded) passEnd(origin, client);
}

/** Returns false while `to` still needs the bytes, and resumes `from` afterwards. */
function createWriter(from: Socket, to: Socket): Sink {
  let waiting = false;
  const onTaken = (): void => {
    if (!waiting || to.writableLength > 0) return;
    waiting = false;
    from.resume();
  };
  return (chunk) => {
    to.write(chunk, onTaken);
    // If the kernel took the chunk at once, no pause is needed.
    waiting = to.writableLength > 0;
    return !waiting;
  };
}

function begin(from: Socket, first: Buffer, sink: Sink, give = giveBuffer): void {
  const before = from.read() as Buffer | null;
  if (!takeBytes(from, sink)) {
    let bytes = 0;
    let given = false;
    from.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (!sink(chunk)) from.pause();
      else if (!given && bytes >= MANY_BYTES) given = give(from, sink);
    });
  }
  let more = first.length === 0 || sink(first);
  if (before !== null) more = sink(before) && more;
  if (more) from.resume();
  else from.pause();
}
