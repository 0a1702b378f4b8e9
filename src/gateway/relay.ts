// gateway/relay.ts: bytes from one socket to another, both ways, as fast as Node can.
// Invariants: nothing is read that cannot be written (a slow reader slows the writer, memory does not grow); the end of one
// direction is passed on and leaves the other open; bytes are counted before they leave.
import { connect, type Socket } from 'node:net';

export interface Counter {
  /** False: the budget is spent, and the connection ends. */
  out(bytes: number): boolean;
  in(bytes: number): void;
}

/** Reading into a buffer of its own, an origin's bytes are written to the client without a copy. */
interface FastReader {
  readonly buffer: Buffer;
  sink: ((chunk: Buffer) => boolean) | null;
  /** What it said before there was anybody to give it to. */
  early: Buffer | null;
}

const readers = new WeakMap<Socket, FastReader>();

// Pages of a buffer that were never written take no memory, so an idle connection is cheap. Used again, because making 64 kB
// for each of thousands of connections in a second keeps the garbage collector busy.
const BUFFER_BYTES = 65_536;
const KEPT = 64;
const spare: Buffer[] = [];
const HALF_CLOSED_MS = 120_000;
/** For the last bytes to somebody who does not take them. */
const FAREWELL_MS = 60_000;
const NOTHING: Buffer = Buffer.alloc(0);

export function openOrigin(address: string, port: number): Socket {
  const reader: FastReader = { buffer: spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES), sink: null, early: null };
  const socket = connect({
    host: address,
    port,
    allowHalfOpen: true,
    noDelay: true,
    onread: {
      buffer: reader.buffer,
      callback(size) {
        const chunk = reader.buffer.subarray(0, size);
        if (reader.sink !== null) return reader.sink(chunk);
        reader.early = Buffer.from(chunk);
        return false;
      },
    },
  });
  readers.set(socket, reader);
  return socket;
}

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
}): void {
  const { client, origin, counter } = input;
  let waiting = false;
  const end = (): void => {
    client.destroy();
    origin.destroy();
  };
  let { firstWords } = input;
  let held = NOTHING;
  const send = (chunk: Buffer): void => {
    if (firstWords === null) return pass(chunk);
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    const answer = firstWords(held);
    if (answer === 'more') return;
    if (answer === 'end') return end();
    firstWords = null;
    pass(held);
    held = NOTHING;
  };
  const pass = (chunk: Buffer): void => {
    if (!counter.out(chunk.length)) return end();
    // What the kernel took at once needs no pause, however large it was.
    if (origin.write(chunk) || origin.writableLength === 0) return;
    waiting = true;
    client.pause();
    origin.once('drain', () => client.resume());
  };
  const receive = (chunk: Buffer): boolean => {
    counter.in(chunk.length);
    client.write(chunk);
    if (client.writableLength === 0) return true;
    // The kernel has not taken all of it: the buffer is not ours again before it has.
    client.write(NOTHING, () => origin.resume());
    return false;
  };
  const reader = readers.get(origin);
  const closed = (): void => {
    if (!client.closed || !origin.closed) {
      const [first, other] = client.closed ? [client, origin] : [origin, client];
      // Who has heard and said everything goes; what the other one has still to be told is not thrown away.
      if (!first.readableEnded || !first.writableFinished) return end();
      return void other.setTimeout(FAREWELL_MS, end);
    }
    if (reader !== undefined) keep(reader);
    input.done();
  };
  if (client.closed || origin.closed) {
    end();
    return client.closed && origin.closed ? closed() : void (client.closed ? origin : client).on('close', closed);
  }
  client.on('close', closed);
  origin.on('close', closed);
  client.on('data', send);
  // Whoever has said everything may still listen; but whether it is still there is not known, so silence has an end then.
  const passEnd = (from: Socket, to: Socket): void => {
    to.end();
    from.setTimeout(input.halfClosedMs ?? HALF_CLOSED_MS, end);
  };
  client.on('end', () => passEnd(client, origin));
  origin.on('end', () => passEnd(origin, client));
  if (input.fromOrigin.length > 0) receive(input.fromOrigin);
  if (reader === undefined) {
    origin.on('data', (chunk: Buffer) => {
      if (!receive(chunk)) origin.pause();
    });
  } else {
    if (reader.early !== null) receive(reader.early);
    reader.early = null;
    reader.sink = receive;
  }
  if (input.fromClient.length > 0) send(input.fromClient);
  // A socket tells its end also while it is paused, and then before anybody was here to listen.
  if (client.readableEnded) passEnd(client, origin);
  if (origin.readableEnded) passEnd(origin, client);
  origin.resume();
  if (!waiting) client.resume();
}

function keep(reader: FastReader): void {
  if (spare.length < KEPT) spare.push(reader.buffer);
  reader.sink = null;
}
