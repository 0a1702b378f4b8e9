// gateway/front/own-buffer.ts: sockets that read into one reusable buffer each. For an ordinary socket Node allocates 64 kB for
// every read, and in a process that has served thousands, allocating and freeing takes as long as moving the bytes.
// Invariant: a buffer is reused only when its bytes are no longer needed, and serves another socket only when both sockets of
// its connection are closed.
import { EventEmitter, once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** False: the chunk is still needed; call `resume()` when it is not. */
export type Sink = (chunk: Buffer) => boolean;

interface Reader {
  readonly buffer: Buffer;
  sink: Sink | null;
}

const readers = new WeakMap<Socket, Reader>();

// Pages that were never written take no memory, so an idle connection is cheap. Buffers are reused because allocating 64 kB for
// each of thousands of connections in a second keeps the garbage collector busy.
const BUFFER_BYTES = 65_536;
const KEPT = 64;
const spare: Buffer[] = [];

export function openOrigin(address: string, port: number): Socket {
  const reader: Reader = { buffer: spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES), sink: null };
  const callback = (size: number): boolean => {
    const chunk = reader.buffer.subarray(0, size);
    // Bytes that arrive before a sink is set wait in the socket.
    return reader.sink === null ? socket.push(Buffer.from(chunk)) : reader.sink(chunk);
  };
  const onread = { buffer: reader.buffer, callback };
  const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true, onread });
  readers.set(socket, reader);
  return socket;
}

/** From now on `sink` gets the bytes of a socket from openOrigin. False: another socket, which emits 'data'. */
export function takeBytes(socket: Socket, sink: Sink): boolean {
  const reader = readers.get(socket);
  if (reader === undefined) return false;
  reader.sink = sink;
  return true;
}

/** Call when the socket is closed and no byte of its buffer is still to be written. */
export function letGo(socket: Socket): void {
  const reader = readers.get(socket);
  if (reader === undefined) return;
  readers.delete(socket);
  reader.sink = null;
  if (spare.length < KEPT) spare.push(reader.buffer);
}

/**
 * Gives an accepted socket the `onread` option, which Node offers only to dialled ones. Call it in 'data' while nothing is
 * buffered; `sink` gets the next bytes. False: not possible now or in this Node; 'data' goes on.
 */
export function giveBuffer(socket: Socket, sink: Sink): boolean {
  if (support.works === null) void tryOut();
  return support.works === true && put(socket, sink);
}

/** The undocumented symbols under which Node keeps the two parts of `onread`. */
const support: { works: boolean | null; buffer?: symbol; callback?: symbol } = { works: null };

interface Handle {
  useUserBuffer?(buffer: Buffer): unknown;
}

function put(socket: Socket, sink: Sink): boolean {
  const inside = socket as unknown as { _handle: Handle | null } & Record<symbol, unknown>;
  const { buffer: atBuffer, callback: atCallback } = support;
  if (atBuffer === undefined || atCallback === undefined || inside[atBuffer] !== null) return false;
  if (typeof inside._handle?.useUserBuffer !== 'function' || socket.readableLength > 0) return false;
  const buffer = spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
  readers.set(socket, { buffer, sink });
  inside[atCallback] = (size: number) => sink(buffer.subarray(0, size));
  inside[atBuffer] = buffer;
  inside._handle.useUserBuffer(buffer);
  return true;
}

const TRY_MS = 5000;

/** Tests this on a connection with ourselves: plain reads, buffered reads with back-pressure, half-close, answer, close. */
export async function tryOut(): Promise<boolean> {
  support.works = false;
  const signal = AbortSignal.timeout(TRY_MS);
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1').unref();
  const sockets: Socket[] = [];
  try {
    await once(server, 'listening', { signal });
    const dialled = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' }).unref();
    sockets.push(dialled);
    const connected = [once(server, 'connection', { signal }), once(dialled, 'connect', { signal })] as const;
    const [[accepted]] = (await Promise.all(connected)) as [[Socket], unknown];
    sockets.push(accepted.unref());
    support.works = accepted.remotePort === dialled.localPort && (await talk(dialled, accepted, signal));
  } catch {
    // A failure means that this Node does not support it.
  } finally {
    server.close();
    for (const socket of sockets) socket.destroy();
  }
  return support.works;
}

async function talk(dialled: Socket, accepted: Socket, signal: AbortSignal): Promise<boolean> {
  for (const symbol of Object.getOwnPropertySymbols(accepted)) {
    if (symbol.description === 'kBuffer') support.buffer = symbol;
    if (symbol.description === 'kBufferCb') support.callback = symbol;
  }
  const heard: string[] = [];
  const events = new EventEmitter();
  const sink = (chunk: Buffer): boolean => {
    heard.push(`into the buffer: ${chunk.toString('latin1')}`);
    events.emit('heard');
    return false;
  };
  accepted.once('data', (chunk: Buffer) => {
    heard.push(`as data: ${chunk.toString('latin1')}`);
    events.emit('heard', put(accepted, sink));
  });
  dialled.write('one');
  await once(events, 'heard', { signal });
  for (const word of ['two', 'three']) {
    dialled.write(word);
    await once(events, 'heard', { signal });
    accepted.resume();
  }
  dialled.end();
  await once(accepted, 'end', { signal });
  accepted.end('four');
  dialled.on('data', (chunk: Buffer) => heard.push(`answered: ${chunk.toString('latin1')}`));
  await Promise.all([once(dialled, 'close', { signal }), once(accepted, 'close', { signal })]);
  letGo(accepted);
  return heard.join() === 'as data: one,into the buffer: two,into the buffer: three,answered: four';
}
