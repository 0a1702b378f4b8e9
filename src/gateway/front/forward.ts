// gateway/front/forward.ts: a door whose gateway is in another process: connections of this network namespace go on to its Unix socket.
// It decides nothing, so there is nothing in it to get round.
// Invariants: bytes as they come, both ways, with the end of each; nobody is connected who has not said anything.
import { connect, createServer, type Server, type Socket } from 'node:net';
import { httpAnswer, sayAndClose } from './answers.ts';
import { relay } from './relay.ts';

const MOST = 4096;
/** Whoever connects and says nothing is not waited for. The gateway has its own patience for what comes after the first byte. */
const SILENCE_MS = 30_000;
const NO_BYTES = Buffer.alloc(0);
const UNCOUNTED = { out: () => true, in: () => undefined };
const SOCKS_VERSION = 5;

export interface Forwarder {
  readonly server: Server;
  /** Ends every connection. */
  close(): void;
}

export function createForwarder(socketPath: string): Forwarder {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    open.add(client);
    client.on('close', () => open.delete(client));
    client.on('error', () => undefined);
    client.setTimeout(SILENCE_MS, () => client.destroy());
    client.once('end', () => client.end());
    client.once('data', (first: Buffer) => {
      client.pause();
      client.setTimeout(0);
      client.removeAllListeners('timeout').removeAllListeners('end');
      passOn(client, first, socketPath);
    });
  });
  server.maxConnections = MOST;
  return {
    server,
    close() {
      for (const client of open) client.destroy();
    },
  };
}

function passOn(client: Socket, first: Buffer, path: string): void {
  const origin = connect({ path, allowHalfOpen: true });
  const unreachable = (): void => {
    client.off('close', gone);
    if (first[0] === SOCKS_VERSION) return void client.destroy();
    sayAndClose(client, httpAnswer(502, 'ags: the gateway does not run, so nothing can be reached'));
  };
  const gone = (): void => void origin.destroy();
  client.once('close', gone);
  origin.once('error', unreachable);
  origin.once('connect', () => {
    origin.off('error', unreachable).on('error', () => undefined);
    client.off('close', gone);
    relay({
      client,
      origin,
      fromClient: first,
      fromOrigin: NO_BYTES,
      counter: UNCOUNTED,
      firstWords: null,
      done: () => undefined,
    });
  });
}
