// gateway/front/own-buffer.ts: sockets that are read into one buffer of their own, again and again. For an ordinary one Node makes
// 64 kB for every read, and in a process that has served thousands, making and freeing them takes as long as moving the bytes.
// Invariant: a buffer is read into again only when nobody needs what is in it, and serves another socket only when both
// sockets that it was for are closed.
import { EventEmitter, once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** False: what it was given is still needed; `resume()` when it is not. */
export type Sink = (chunk: Buffer) => boolean;

interface Reader {
  readonly buffer: Buffer;
  sink: Sink | null;
}

const readers = new WeakMap<Socket, Reader>();

// Pages of a buffer that were never written take no memory, so an idle connection is cheap. Used again, because making 64 kB
// for each of thousands of connections in a second keeps the garbage collector busy.
const BUFFER_BYTES = 65_536;
const KEPT = 64;
const spare: Buffer[] = [];

export function openOrigin(address: string, port: number): Socket {
  const reader: Reader = { buffer: spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES), sink: null };
  const callback = (size: number): boolean => {
    const chunk = reader.buffer.subarray(0, size);
    // What it says before there is anybody to give it to waits in the socket.
    return reader.sink === null ? socket.push(Buffer.from(chunk)) : reader.sink(chunk);
  };
  const onread = { buffer: reader.buffer, callback };
  const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true, onread });
  readers.set(socket, reader);
  return socket;
}

/** Of a socket made here: from now on `sink` gets the bytes. False: it is another one, and has 'data'. */
export function takeBytes(socket: Socket, sink: Sink): boolean {
  const reader = readers.get(socket);
  if (reader === undefined) return false;
  reader.sink = sink;
  return true;
}

/** The socket is closed, and nothing of its buffer is still to be written. */
export function letGo(socket: Socket): void {
  const reader = readers.get(socket);
  if (reader === undefined) return;
  readers.delete(socket);
  reader.sink = null;
  if (spare.length < KEPT) spare.push(reader.buffer);
}

/**
 * Gives an accepted socket what Node offers to dialled ones only (`onread`). Called in its 'data' while nothing waits in it;
 * what comes next goes to `sink`. False: not now, or not in this Node; the bytes come as 'data' as before.
 */
export function giveBuffer(socket: Socket, sink: Sink): boolean {
  if (support.works === null) void tryOut();
  return support.works === true && put(socket, sink);
}

/** What Node keeps the two parts of `onread` under: the same for all sockets, and not documented. */
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

/** A connection with ourselves: read as any other, then by its buffer, made to wait, half closed, answered and closed. */
export async function tryOut(): Promise<boolean> {
  support.works = false;
  const signal = AbortSignal.timeout(TRY_MS);
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1').unref();
  const sockets: Socket[] = [];
  try {
    await once(server, 'listening', { signal });
    const near = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' }).unref();
    sockets.push(near);
    const connected = [once(server, 'connection', { signal }), once(near, 'connect', { signal })] as const;
    const [[far]] = (await Promise.all(connected)) as [[Socket], unknown];
    sockets.push(far.unref());
    support.works = far.remotePort === near.localPort && (await talk(near, far, signal));
  } catch {
    // Then it does not.
  } finally {
    server.close();
    for (const socket of sockets) socket.destroy();
  }
  return support.works;
}

async function talk(near: Socket, far: Socket, signal: AbortSignal): Promise<boolean> {
  for (const symbol of Object.getOwnPropertySymbols(far)) {
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
  far.once('data', (chunk: Buffer) => {
    heard.push(`as data: ${chunk.toString('latin1')}`);
    events.emit('heard', put(far, sink));
  });
  near.write('one');
  await once(events, 'heard', { signal });
  for (const word of ['two', 'three']) {
    near.write(word);
    await once(events, 'heard', { signal });
    far.resume();
  }
  near.end();
  await once(far, 'end', { signal });
  far.end('four');
  near.on('data', (chunk: Buffer) => heard.push(`answered: ${chunk.toString('latin1')}`));
  await Promise.all([once(near, 'close', { signal }), once(far, 'close', { signal })]);
  letGo(far);
  return heard.join() === 'as data: one,into the buffer: two,into the buffer: three,answered: four';
}
