// sandbox/io/listeners.ts: receives a sandbox's listeners from its launcher: our sockets in the sandbox's network.
// They arrive over Node's channel between a process and its child, so Node turns them into servers.
// Invariant: the caller gets every listener before the command runs, and none stays open after the sandbox.
import type { ChildProcess } from 'node:child_process';
import { createSocket, type BindOptions, type Socket as DatagramSocket } from 'node:dgram';
import { createServer, isIPv4, Server, Socket } from 'node:net';
import { AgsError } from '../../protocol/errors.ts';
import type { SandboxNetwork } from '../../protocol/spec.ts';
import type { OnListener } from '../backend.ts';

export interface Listeners {
  /** `lost`: some have not arrived, and no more can. */
  readonly state: 'awaited' | 'open' | 'lost';
  connect(port: number, address?: string): Promise<Socket>;
  /** Opens another listener at this port of the sandbox's loopback, while it runs. Rejects if the port is taken. */
  open(port: number, address?: string): Promise<Server>;
  /** From now on `onPorts` gets the ports with listeners inside, whenever they change. */
  watchPorts(): void;
  close(): void;
}

/** The kernel's own bound (net.core.somaxconn); a burst of connections waits instead of being refused. */
const BACKLOG = 4096;
/** Listeners that may be opened later: containers of a task can publish any number of ports, and each takes a descriptor. */
export const MOST_LATE = 256;

export function receiveListeners(
  child: ChildProcess,
  network: SandboxNetwork,
  onListener: OnListener | undefined,
  onPorts?: (ports: readonly number[]) => void,
): Listeners {
  const expected = network.kind === 'gateway' ? network.listeners : [];
  const open = new Map<number, Server | DatagramSocket>();
  const late = new Set<Server>();
  const asked = new Map<number, { resolve(handle: Socket | Server): void; refuse(): void }>();
  let closed = false;
  let next = 0;
  const refuseAll = (): void => {
    for (const { refuse } of asked.values()) refuse();
    asked.clear();
  };
  const hangUpWhenComplete = (): void => {
    if (network.kind === 'gateway' && !network.reach && open.size === expected.length) hangUp(child);
  };
  hangUpWhenComplete();
  child.on('message', (message, handle) => {
    const { listener, connected, refused } = message as Partial<Record<'listener' | 'connected' | 'refused', number>>;
    const { ports } = message as { ports?: readonly number[] };
    if (ports !== undefined) return onPorts?.(ports);
    if (listener !== undefined) {
      const mine = handle instanceof Server ? listenAgain(handle) : bindAgain(handle);
      if (closed) return closeListener(mine);
      // A connection for which no descriptor is left is refused; the others stay.
      mine.on('error', () => undefined);
      open.set(listener, mine);
      onListener?.(expected[listener]?.name ?? '', mine);
      return hangUpWhenComplete();
    }
    const id = connected ?? refused ?? -1;
    const waiting = asked.get(id);
    if (handle instanceof Socket) {
      handle.allowHalfOpen = true;
      if (waiting === undefined) handle.destroy();
      else waiting.resolve(handle);
    } else if (handle instanceof Server) {
      const mine = listenAgain(handle).on('error', () => undefined);
      if (closed || waiting === undefined) return closeListener(mine);
      late.add(mine.on('close', () => late.delete(mine)));
      waiting.resolve(mine);
    } else waiting?.refuse();
    asked.delete(id);
  });
  child.on('disconnect', refuseAll);
  const ask = (what: 'connect' | 'listen', port: number, address = LOOPBACK): Promise<Socket | Server> => {
    if (network.kind !== 'gateway' || !network.reach)
      return Promise.reject(new AgsError('usage.invalid', 'No port of this sandbox can be reached from outside.'));
    return new Promise((resolve, reject) => {
      const refuse = (): void => reject(new AgsError('backend.failed', REFUSED[what](port)));
      if (!child.connected || !Number.isInteger(port) || port < 1 || port > 65_535 || !isIPv4(address)) return refuse();
      const id = next++;
      asked.set(id, { resolve, refuse });
      child.send({ [what]: port, id, at: address }, (error) => {
        if (error === null) return;
        asked.delete(id);
        refuse();
      });
    });
  };
  return {
    get state() {
      if (open.size === expected.length) return 'open';
      return child.connected ? 'awaited' : 'lost';
    },
    connect: (port, address) => ask('connect', port, address) as Promise<Socket>,
    open: (port, address) =>
      late.size + asked.size < MOST_LATE
        ? (ask('listen', port, address) as Promise<Server>)
        : Promise.reject(new AgsError('backend.failed', `The sandbox already has ${MOST_LATE} extra listeners.`)),
    watchPorts() {
      if (child.connected) child.send('watch', () => undefined);
    },
    close() {
      closed = true;
      for (const listener of [...open.values(), ...late]) closeListener(listener);
      hangUp(child);
      refuseAll();
    },
  };
}

const LOOPBACK = '127.0.0.1';

export const REFUSED = {
  connect: (port: number) => `No server listens at port ${port} inside the sandbox.`,
  listen: (port: number) => `Port ${port} inside the sandbox is in use or reserved.`,
};

/** The child closes the channel: after our own disconnect() Node would never report that the child's streams are closed. */
function hangUp(child: ChildProcess): void {
  // The child may have ended meanwhile, which is just as good.
  if (child.connected) child.send('done', () => undefined);
}

/** Node's own server closes a connection as soon as the other side ends; ours does not. */
function listenAgain(received: Server): Server {
  return createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: false }).listen(received, BACKLOG);
}

// With name lookup, a socket would load node:dns, which takes longer than all listeners together.
function bindAgain(received: unknown): DatagramSocket {
  const asItIs = createSocket({ type: 'udp4', lookup: (address, _options, found) => found(null, address, 4) });
  return asItIs.bind(received as BindOptions);
}

function closeListener(listener: Server | DatagramSocket): void {
  try {
    listener.close();
  } catch {
    // Its owner has closed it already.
  }
}
