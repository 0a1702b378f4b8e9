// sandbox/io/listeners.ts: the doors of a sandbox, as they come from its launcher: sockets that stand in its network and are ours.
// They arrive over Node's own channel between a process and its child, so Node makes servers of them.
// Invariant: a door is given to the caller before the command runs, and nothing is left open when the sandbox is over.
import type { ChildProcess } from 'node:child_process';
import { createSocket, type BindOptions, type Socket as DatagramSocket } from 'node:dgram';
import { createServer, isIPv4, Server, Socket } from 'node:net';
import { AgsError } from '../../protocol/errors.ts';
import type { SandboxNetwork } from '../../protocol/spec.ts';
import type { OnDoor } from '../backend.ts';

export interface Doors {
  /** `lost`: no more can come, and some have not. */
  readonly state: 'awaited' | 'open' | 'lost';
  connect(port: number, address?: string): Promise<Socket>;
  /** A door at this port of the sandbox's loopback, opened while it runs. Rejects if the port is taken. */
  open(port: number, address?: string): Promise<Server>;
  /** From now on `onPorts` hears which ports somebody listens at, whenever that changes. */
  watchPorts(): void;
  close(): void;
}

/** The kernel's own bound (net.core.somaxconn); a burst of connections waits instead of being refused. */
const BACKLOG = 4096;
/** So many may be opened while it runs: containers of a task can publish any number of ports, and each is a descriptor of ours. */
export const MOST_LATE = 256;

export function receiveDoors(
  child: ChildProcess,
  network: SandboxNetwork,
  onDoor: OnDoor | undefined,
  onPorts?: (ports: readonly number[]) => void,
): Doors {
  const expected = network.kind === 'gateway' ? network.doors : [];
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
    const { door, connected, refused } = message as Partial<Record<'door' | 'connected' | 'refused', number>>;
    const { ports } = message as { ports?: readonly number[] };
    if (ports !== undefined) return onPorts?.(ports);
    if (door !== undefined) {
      const mine = handle instanceof Server ? listenAgain(handle) : bindAgain(handle);
      if (closed) return closeDoor(mine);
      // Whom we cannot take in, for want of descriptors, is turned away; the others stay.
      mine.on('error', () => undefined);
      open.set(door, mine);
      onDoor?.(expected[door]?.name ?? '', mine);
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
      if (closed || waiting === undefined) return closeDoor(mine);
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
        : Promise.reject(new AgsError('backend.failed', `There are ${MOST_LATE} doors already.`)),
    watchPorts() {
      if (child.connected) child.send('watch', () => undefined);
    },
    close() {
      closed = true;
      for (const door of [...open.values(), ...late]) closeDoor(door);
      hangUp(child);
      refuseAll();
    },
  };
}

const LOOPBACK = '127.0.0.1';

export const REFUSED = {
  connect: (port: number) => `Nobody listens at port ${port} inside the sandbox.`,
  listen: (port: number) => `Port ${port} inside the sandbox is taken, or not free to be taken.`,
};

/** The other side closes the channel: after a disconnect() of ours Node would never say that the child's streams are closed. */
function hangUp(child: ChildProcess): void {
  // It may have ended meanwhile, which is all that was asked for.
  if (child.connected) child.send('done', () => undefined);
}

/** The server that Node makes closes a connection as soon as the other side has said its last word; ours does not. */
function listenAgain(received: Server): Server {
  return createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: false }).listen(received, BACKLOG);
}

// A socket that could look names up would load all of node:dns at once, which takes longer than the doors together.
function bindAgain(received: unknown): DatagramSocket {
  const asItIs = createSocket({ type: 'udp4', lookup: (address, _options, found) => found(null, address, 4) });
  return asItIs.bind(received as BindOptions);
}

function closeDoor(door: Server | DatagramSocket): void {
  try {
    door.close();
  } catch {
    // Whoever was given it has closed it already.
  }
}
