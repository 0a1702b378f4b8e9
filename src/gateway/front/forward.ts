// gateway/front/forward.ts: a listener whose gateway is in another process: it forwards connections to the gateway's Unix socket.
// It decides nothing, so there is nothing in it to bypass.
// Invariants: bytes and the end of each direction are forwarded unchanged; a silent client gets no connection.
import { connect, createServer, type Server, type Socket } from 'node:net';
import { httpAnswer, sayAndClose } from './answers.ts';
import { relay } from './relay.ts';

const MOST = 4096;
/** A client that sends nothing is closed after this. From the first byte on, the gateway's own timeouts apply. */
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
