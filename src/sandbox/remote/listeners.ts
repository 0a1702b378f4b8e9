// sandbox/remote/listeners.ts: the doors of a sandbox on another machine. The relay there takes connections; each becomes a stream of the channel, and here
// a socket at the same door, so that the gateway and everybody else need not know how far away the sandbox is.
// Invariant: a connection comes from a door that was asked for, or it ends everything.
import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { createServer, isIPv4, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { openPairs } from '../../lib/stream/socket-pair.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { Door, SandboxNetwork } from '../../protocol/spec.ts';
import type { OnDoor, Sandbox } from '../backend.ts';
import { REFUSED } from '../io/listeners.ts';
import type { Channel, Frame } from './channel.ts';

export interface FarDoors extends Pick<Sandbox, 'connect' | 'open'> {
  /** False: the frame is none of theirs. Throws what must end the connection. */
  heard(frame: Frame): boolean;
  close(): void;
}

interface Asked {
  readonly place: Pick<Door, 'address' | 'port'>;
  resolve(handle: Socket | Server): void;
  refuse(): void;
}

export function openFarDoors(
  channel: () => Channel,
  network: SandboxNetwork,
  directory: string,
  onDoor: OnDoor | undefined,
): FarDoors {
  const expected = network.kind === 'gateway' ? network.doors : [];
  const pairs = openPairs(directory, `far-${process.pid}`);
  const servers = new Map<number, Server>();
  const datagrams = new Map<number, DatagramSocket>();
  const asked = new Map<number, Asked>();
  const open = new Set<Socket>();
  let next = 0;
  let over = false;
  expected.forEach((door, at) => {
    if (door.protocol === 'tcp') return void meet(at, door);
    const socket = farDatagrams(door, (body) => channel().send('u', at, body));
    datagrams.set(at, socket);
    onDoor?.(door.name, socket);
  });
  function meet(at: number, door: Door): Server {
    // It listens to nobody: who comes to it comes from the relay.
    const server = createServer({ allowHalfOpen: true }).on('error', () => undefined);
    const close = (): Server => {
      if (!servers.delete(at)) return server;
      channel().send('q', at);
      process.nextTick(() => server.emit('close'));
      return server;
    };
    Object.assign(server, { address: () => placeOf(door), close });
    servers.set(at, server);
    if (at < expected.length) onDoor?.(door.name, server);
    return server;
  }
  const enter = async (stream: Duplex): Promise<Socket> => {
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
  const visited = async (server: Server, id: number, body: Buffer): Promise<void> => {
    const socket = await enter(channel().stream(id));
    const [localAddress, localPort, remotePort] = [addressOf(body, 4), body.readUInt16BE(8), body.readUInt16BE(10)];
    const facts = { localAddress, localPort, remotePort, remoteAddress: '127.0.0.1' };
    for (const [name, value] of Object.entries(facts)) Object.defineProperty(socket, name, { value });
    server.emit('connection', socket);
  };
  const answered = (body: Buffer): Asked => {
    const id = body.length === 4 ? body.readUInt32BE(0) : -1;
    const waiting = asked.get(id);
    if (waiting === undefined) throw new Error('nobody asked for this');
    asked.delete(id);
    return waiting;
  };
  const ask = (what: 'c' | 'b', port: number, address = '127.0.0.1'): Promise<Socket | Server> => {
    if (network.kind !== 'gateway' || !network.reach)
      return Promise.reject(new AgsError('usage.invalid', 'No port of this sandbox can be reached from outside.'));
    return new Promise((resolve, reject) => {
      const refuse = (): void =>
        reject(new AgsError('backend.failed', REFUSED[what === 'c' ? 'connect' : 'listen'](port)));
      if (over || !Number.isInteger(port) || port < 1 || port > 65_535 || !isIPv4(address)) return refuse();
      const id = next++;
      asked.set(id, { place: { address, port }, resolve, refuse });
      channel().send(what, id, placeBytes(address, port));
    });
  };
  return {
    connect: (port) => ask('c', port) as Promise<Socket>,
    open: (port, address) => ask('b', port, address) as Promise<Server>,
    heard({ kind, id, body }) {
      if (kind === 'a') {
        const server = body.length === 12 ? servers.get(body.readUInt32BE(0)) : undefined;
        if (server === undefined || id < 16) throw new Error('somebody came to a door that there is not');
        void visited(server, id, Buffer.from(body)).catch(() => channel().send('x', id));
      } else if (kind === 'u') {
        const door = datagrams.get(id);
        if (door === undefined || body.length < 6) throw new Error('a message came to a door that there is not');
        door.emit('message', Buffer.from(body.subarray(6)), {
          address: addressOf(body, 0),
          port: body.readUInt16BE(4),
        });
      } else if (kind === 'o') {
        if (id < 16) throw new Error('nobody asked for this');
        const waiting = answered(body);
        void enter(channel().stream(id)).then(waiting.resolve, () => {
          channel().send('x', id);
          waiting.refuse();
        });
      } else if (kind === 'B') {
        if (id < expected.length || servers.has(id)) throw new Error('this door is open already');
        const { place, resolve } = answered(body);
        resolve(meet(id, { name: '', protocol: 'tcp', ...place }));
      } else if (kind === 'n') {
        asked.get(id)?.refuse();
        asked.delete(id);
      } else return false;
      return true;
    },
    close() {
      over = true;
      for (const { refuse } of asked.values()) refuse();
      asked.clear();
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

/** It is bound to nothing here: what it hears and says goes through the relay. */
function farDatagrams(door: Door, say: (body: Buffer) => void): DatagramSocket {
  const socket = createSocket('udp4');
  const send = (data: Buffer | string, port: number, address: string, done?: () => void): void => {
    say(Buffer.concat([placeBytes(address, port), Buffer.from(data)]));
    done?.();
  };
  return Object.assign(socket, { send, address: () => placeOf(door) });
}

function placeOf({ address, port }: Door): AddressInfo {
  return { address, port, family: 'IPv4' };
}

function closeDatagrams(socket: DatagramSocket): void {
  try {
    socket.close();
  } catch {
    // Whoever was given it has closed it already.
  }
}
