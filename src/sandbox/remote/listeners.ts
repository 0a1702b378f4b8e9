// sandbox/remote/listeners.ts: the listeners of a remote sandbox. The relay there accepts connections. Each becomes a stream of the
// channel and here a socket at the same listener, so that the gateway need not know that the sandbox is remote.
// Invariant: a connection to a listener that was not requested ends everything.
import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { createServer, isIPv4, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { openPairs } from '../../lib/stream/socket-pair.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { Listener, SandboxNetwork } from '../../protocol/spec.ts';
import type { OnListener, Sandbox } from '../backend.ts';
import { REFUSED } from '../io/listeners.ts';
import type { Channel, Frame } from './channel.ts';

export interface RemoteListeners extends Pick<Sandbox, 'connect' | 'open'> {
  /** False: the frame is not for listeners. Throws if the connection must end. */
  receive(frame: Frame): boolean;
  close(): void;
}

interface Request {
  readonly place: Pick<Listener, 'address' | 'port'>;
  resolve(handle: Socket | Server): void;
  refuse(): void;
}

export function openRemoteListeners(
  channel: () => Channel,
  network: SandboxNetwork,
  directory: string,
  onListener: OnListener | undefined,
): RemoteListeners {
  const expected = network.kind === 'gateway' ? network.listeners : [];
  const pairs = openPairs(directory, `far-${process.pid}`);
  const servers = new Map<number, Server>();
  const datagrams = new Map<number, DatagramSocket>();
  const requests = new Map<number, Request>();
  const open = new Set<Socket>();
  let next = 0;
  let over = false;
  expected.forEach((listener, at) => {
    if (listener.protocol === 'tcp') return void addServer(at, listener);
    const socket = remoteDatagrams(listener, (body) => channel().send('u', at, body));
    datagrams.set(at, socket);
    onListener?.(listener.name, socket);
  });
  function addServer(at: number, listener: Listener): Server {
    // It is not bound: its connections come from the relay.
    const server = createServer({ allowHalfOpen: true }).on('error', () => undefined);
    const close = (): Server => {
      if (!servers.delete(at)) return server;
      channel().send('q', at);
      process.nextTick(() => server.emit('close'));
      return server;
    };
    Object.assign(server, { address: () => placeOf(listener), close });
    servers.set(at, server);
    if (at < expected.length) onListener?.(listener.name, server);
    return server;
  }
  const connectSocket = async (stream: Duplex): Promise<Socket> => {
    const [mine, theirs] = await pairs.pair();
    for (const socket of [mine, theirs]) {
      open.add(socket);
      socket.on('error', () => undefined).on('close', () => open.delete(socket));
    }
    mine.pipe(stream).pipe(mine);
    mine.on('close', () => stream.destroy());
    stream.on('close', () => mine.destroySoon());
    return theirs;
  };
  const accept = async (server: Server, id: number, body: Buffer): Promise<void> => {
    const socket = await connectSocket(channel().stream(id));
    const [localAddress, localPort, remotePort] = [addressOf(body, 4), body.readUInt16BE(8), body.readUInt16BE(10)];
    const facts = { localAddress, localPort, remotePort, remoteAddress: '127.0.0.1' };
    for (const [name, value] of Object.entries(facts)) Object.defineProperty(socket, name, { value });
    server.emit('connection', socket);
  };
  const takeRequest = (body: Buffer): Request => {
    const id = body.length === 4 ? body.readUInt32BE(0) : -1;
    const waiting = requests.get(id);
    if (waiting === undefined) throw new Error('an answer came without a request');
    requests.delete(id);
    return waiting;
  };
  const request = (what: 'c' | 'b', port: number, address = '127.0.0.1'): Promise<Socket | Server> => {
    if (network.kind !== 'gateway' || !network.reach)
      return Promise.reject(new AgsError('usage.invalid', 'No port of this sandbox can be reached from outside.'));
    return new Promise((resolve, reject) => {
      const refuse = (): void =>
        reject(new AgsError('backend.failed', REFUSED[what === 'c' ? 'connect' : 'listen'](port)));
      if (over || !Number.isInteger(port) || port < 1 || port > 65_535 || !isIPv4(address)) return refuse();
      const id = next++;
      requests.set(id, { place: { address, port }, resolve, refuse });
      channel().send(what, id, placeBytes(address, port));
    });
  };
  return {
    connect: (port) => request('c', port) as Promise<Socket>,
    open: (port, address) => request('b', port, address) as Promise<Server>,
    receive({ kind, id, body }) {
      if (kind === 'a') {
        const server = body.length === 12 ? servers.get(body.readUInt32BE(0)) : undefined;
        if (server === undefined || id < 16) throw new Error('a connection came for a listener that does not exist');
        void accept(server, id, Buffer.from(body)).catch(() => channel().send('x', id));
      } else if (kind === 'u') {
        const listener = datagrams.get(id);
        if (listener === undefined || body.length < 6)
          throw new Error('a datagram came for a listener that does not exist');
        listener.emit('message', Buffer.from(body.subarray(6)), {
          address: addressOf(body, 0),
          port: body.readUInt16BE(4),
        });
      } else if (kind === 'o') {
        if (id < 16) throw new Error('an answer came without a request');
        const waiting = takeRequest(body);
        void connectSocket(channel().stream(id)).then(waiting.resolve, () => {
          channel().send('x', id);
          waiting.refuse();
        });
      } else if (kind === 'B') {
        if (id < expected.length || servers.has(id)) throw new Error('this listener is already open');
        const { place, resolve } = takeRequest(body);
        resolve(addServer(id, { name: '', protocol: 'tcp', ...place }));
      } else if (kind === 'n') {
        requests.get(id)?.refuse();
        requests.delete(id);
      } else return false;
      return true;
    },
    close() {
      over = true;
      for (const { refuse } of requests.values()) refuse();
      requests.clear();
      for (const socket of open) socket.destroy();
      for (const server of servers.values()) server.close();
      for (const socket of datagrams.values()) closeDatagrams(socket);
      pairs.close();
    },
  };
}

function addressOf(body: Buffer, at: number): string {
  return body.subarray(at, at + 4).join('.');
}

function placeBytes(address: string, port: number): Buffer {
  return Buffer.from([...address.split('.').map(Number), port >> 8, port & 255]);
}

/** It is not bound: its datagrams go through the relay. */
function remoteDatagrams(listener: Listener, say: (body: Buffer) => void): DatagramSocket {
  const socket = createSocket('udp4');
  const send = (data: Buffer | string, port: number, address: string, done?: () => void): void => {
    say(Buffer.concat([placeBytes(address, port), Buffer.from(data)]));
    done?.();
  };
  return Object.assign(socket, { send, address: () => placeOf(listener) });
}

function placeOf({ address, port }: Listener): AddressInfo {
  return { address, port, family: 'IPv4' };
}

function closeDatagrams(socket: DatagramSocket): void {
  try {
    socket.close();
  } catch {
    // Its owner has closed it already.
  }
}
