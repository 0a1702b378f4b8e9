// gateway/front/relay.ts: bytes from one socket to another, both ways, as fast as Node can.
// Invariants: nothing is read that cannot be written (a slow reader slows the writer, memory does not grow); the end of one
// direction is passed on and leaves the other open; bytes are counted before they leave.
import type { Socket } from 'node:net';
import { giveBuffer, letGo, type Sink, takeBytes } from './own-buffer.ts';

export interface Counter {
  /** False: the budget is spent, and the connection ends. */
  out(bytes: number): boolean;
  in(bytes: number): void;
}

const HALF_CLOSED_MS = 120_000;
/** For the last bytes to somebody who does not take them. */
const FAREWELL_MS = 60_000;
/** From here on a buffer of its own is worth its making. */
const MANY_BYTES = 262_144;
const NOTHING: Buffer = Buffer.alloc(0);

/** `done` is called once, when both sockets are closed. */
export function relay(input: {
  readonly client: Socket;
  readonly origin: Socket;
  /** Of the client, read already; of the origin, read already. */
  readonly fromClient: Buffer;
  readonly fromOrigin: Buffer;
  readonly counter: Counter;
  /** Gets all that the client has said so far, until it lets it go or ends the connection. */
  readonly firstWords: ((bytes: Buffer) => 'more' | 'go' | 'end') | null;
  readonly done: () => void;
  /** How long there may be silence when one side has said everything. */
  readonly halfClosedMs?: number;
  /** How a client that sends much is read. */
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
    // The buffer it is in will be read into again.
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
      // Who has heard and said everything goes; what the other one has still to be told is not thrown away.
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
  // Whoever has said everything may still listen; but whether it is still there is not known, so silence has an end then.
  const passEnd = (from: Socket, to: Socket): void => {
    to.end();
    from.setTimeout(input.halfClosedMs ?? HALF_CLOSED_MS, end);
  };
  client.on('end', () => passEnd(client, origin));
  origin.on('end', () => passEnd(origin, client));
  begin(origin, input.fromOrigin, sendIn, input.giveBuffer);
  begin(client, input.fromClient, hear, input.giveBuffer);
  // A socket tells its end also while it is paused, and then before anybody was here to listen.
  if (client.readableEnded) passEnd(client, origin);
  if (origin.readableEnded) passEnd(origin, client);
}

/** Returns false if `to` still needs the bytes; `from` is read on when it does not. */
function createWriter(from: Socket, to: Socket): Sink {
  let waiting = false;
  const onTaken = (): void => {
    if (!waiting || to.writableLength > 0) return;
    waiting = false;
    from.resume();
  };
  return (chunk) => {
    to.write(chunk, onTaken);
    // What the kernel took at once needs no pause, however large it was.
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
