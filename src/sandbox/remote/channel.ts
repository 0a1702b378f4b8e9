// sandbox/remote/channel.ts: many streams over one connection: the local side of the relay on another machine.
// Invariant: the other side is untrusted. An unknown frame, more bytes than requested, or an invalid number ends the connection. The
// windows of the open streams bound the memory used here.
import { Duplex, type Readable, type Writable } from 'node:stream';

/** Bytes of a stream that may be sent before the other side has read them. */
export const WINDOW = 128 * 1024;
/** Maximum size of a frame's body. */
export const MAX_FRAME = 64 * 1024;
/** Maximum number of streams; further connections wait at their listener. */
export const MAX_STREAMS = 800;

/** Streams that every sandbox has; connections to a listener get higher numbers. */
export const STREAM = { stdin: 1, stdout: 2, stderr: 3, terminal: 4 } as const;

export interface Frame {
  readonly kind: string;
  readonly id: number;
  readonly body: Buffer;
}

export interface Channel {
  /** The stream with this number. */
  stream(id: number): Duplex;
  send(kind: string, id: number, body?: Buffer): void;
  /** Ends the connection, and with it everything on the other side. */
  close(): void;
}

export interface ChannelEvents {
  /** Receives frames that belong to no stream. An exception ends the connection. */
  onFrame(frame: Frame): void;
  /** Called once. null: the channel was closed normally. */
  onEnd(problem: string | null): void;
}

const HEAD = 9;
const PIECE = 32 * 1024;

export function openChannel(input: Readable, output: Writable, events: ChannelEvents): Channel {
  const streams = new Map<number, RemoteStream>();
  let waiting: Buffer[] = [];
  let bytes = 0;
  let over = false;
  const end = (problem: string | null): void => {
    if (over) return;
    over = true;
    input.destroy();
    output.end();
    for (const stream of streams.values()) stream.cut();
    streams.clear();
    events.onEnd(problem);
  };
  const send = (kind: string, id: number, body: Buffer = Buffer.alloc(0)): void => {
    if (over) return;
    const head = Buffer.alloc(HEAD);
    head.write(kind, 0, 'latin1');
    head.writeUInt32BE(id, 1);
    head.writeUInt32BE(body.length, 5);
    output.write(body.length === 0 ? head : Buffer.concat([head, body]));
  };
  const take = (frame: Frame): void => {
    if (!'dexw'.includes(frame.kind)) return events.onFrame(frame);
    // The other side may not know yet that we have ended this stream.
    const stream = streams.get(frame.id);
    if (stream === undefined) return;
    stream.receive(frame);
  };
  const read = (): void => {
    for (;;) {
      if (bytes < HEAD) return;
      const all = waiting.length === 1 && waiting[0] !== undefined ? waiting[0] : Buffer.concat(waiting, bytes);
      waiting = [all];
      const size = all.readUInt32BE(5);
      if (size > MAX_FRAME) throw new Error('a frame was too large');
      if (bytes < HEAD + size) return;
      waiting = [all.subarray(HEAD + size)];
      bytes -= HEAD + size;
      take({ kind: all.toString('latin1', 0, 1), id: all.readUInt32BE(1), body: all.subarray(HEAD, HEAD + size) });
      if (over) return;
    }
  };
  input.on('data', (chunk: Buffer) => {
    if (over) return;
    waiting.push(chunk);
    bytes += chunk.length;
    try {
      read();
    } catch (error) {
      end((error as Error).message);
    }
  });
  input.on('end', () => end('the connection ended'));
  input.on('error', () => end('the connection ended'));
  output.on('error', () => end('the connection ended'));
  return {
    stream(id) {
      if (streams.has(id) || streams.size > MAX_STREAMS + 100) throw new Error('there are too many streams');
      const stream = new RemoteStream(id, send, () => streams.delete(id));
      streams.set(id, stream);
      if (over) stream.cut();
      return stream;
    },
    send,
    close: () => end(null),
  };
}

class RemoteStream extends Duplex {
  readonly #id: number;
  readonly #send: Channel['send'];
  readonly #forget: () => void;
  /** Bytes that we may still send, and that the other side may. */
  #may = WINDOW;
  #room = WINDOW;
  #owed = 0;
  #held: { chunk: Buffer; done: () => void } | null = null;
  #theirEnd = false;
  #ourEnd = false;
  #over = false;

  constructor(id: number, send: Channel['send'], forget: () => void) {
    super({ allowHalfOpen: true });
    this.#id = id;
    this.#send = send;
    this.#forget = forget;
    this.on('error', () => undefined);
  }

  receive({ kind, body }: Frame): void {
    if (kind === 'd') {
      this.#room -= body.length;
      if (this.#room < 0 || this.#theirEnd) throw new Error('more data came than was requested');
      this.#owed += body.length;
      // A copy, because the frame shares its buffer with others.
      this.push(Buffer.from(body));
    } else if (kind === 'e') {
      if (this.#theirEnd) return;
      this.#theirEnd = true;
      this.push(null);
    } else if (kind === 'x') {
      this.#theirEnd = this.#ourEnd = true;
      this.destroy();
    } else {
      if (body.length !== 4) throw new Error('a frame was broken');
      this.#may += body.readUInt32BE(0);
      if (this.#may > WINDOW) throw new Error('more data was confirmed than was sent');
      this.#go();
    }
  }

  /** The connection is over: received data can still be read, and written data is discarded. */
  cut(): void {
    if (!this.#theirEnd) this.push(null);
    this.#theirEnd = this.#ourEnd = this.#over = true;
    const held = this.#held;
    this.#held = null;
    held?.done();
    // The stream closes once it is read to its end.
    this.end();
  }

  override _read(): void {
    if (this.#owed === 0 || this.#theirEnd) return;
    const credit = Buffer.alloc(4);
    credit.writeUInt32BE(this.#owed);
    this.#room += this.#owed;
    this.#owed = 0;
    this.#send('w', this.#id, credit);
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (this.#over) return done();
    this.#held = { chunk, done };
    this.#go();
  }

  #go(): void {
    while (this.#held !== null) {
      const { chunk, done } = this.#held;
      const piece = chunk.subarray(0, Math.min(PIECE, this.#may));
      if (piece.length === 0 && chunk.length > 0) return;
      this.#may -= piece.length;
      this.#send('d', this.#id, piece);
      const rest = chunk.subarray(piece.length);
      this.#held = rest.length === 0 ? null : { chunk: rest, done };
      if (this.#held === null) done();
    }
  }

  override _final(done: () => void): void {
    this.#ourEnd = true;
    this.#send('e', this.#id);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#theirEnd || !this.#ourEnd) this.#send('x', this.#id);
    this.#forget();
    done(error);
  }
}
