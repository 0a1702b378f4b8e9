// A real origin, the interception before it, and raw clients.
import { once } from 'node:events';
import { connect as connectTcp, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import {
  connect as connectTls,
  createServer as createTlsServer,
  type ConnectionOptions,
  type TLSSocket,
} from 'node:tls';
import { type Authority, createAuthority } from '../../src/gateway/intercept/certificate.ts';
import {
  intercept,
  type InterceptInput,
  type LiveSecret,
  type RequestInfo,
} from '../../src/gateway/intercept/intercept.ts';

export const inside = createAuthority({ commonName: 'ags test', days: 2, now: new Date() });
export const outside = createAuthority({ commonName: 'test roots', days: 2, now: new Date() });
const roots = [outside.certificatePem];

export interface Stage extends AsyncDisposable {
  readonly port: number;
  readonly infos: RequestInfo[];
  /** Connections that reached the origin and finished their handshake. */
  readonly origins: TLSSocket[];
  /** Everything the origin has received. */
  received(): string;
  readonly over: Promise<void>[];
  client(options?: ConnectionOptions): Promise<Client>;
}

export type StageOptions = Partial<
  Pick<
    InterceptInput,
    'decide' | 'secrets' | 'basePath' | 'meter' | 'count' | 'headMs' | 'idleMs' | 'dial' | 'host' | 'anyPath'
  >
> & {
  issuer?: Authority;
  certificateFor?: string;
  /** The protocol of the client. */
  scheme?: 'https' | 'http';
};

/** `origin` handles each connection that reaches the origin. */
export async function stage(origin: (socket: TLSSocket) => void, options: StageOptions = {}): Promise<Stage> {
  const origins: TLSSocket[] = [];
  const infos: RequestInfo[] = [];
  const over: Promise<void>[] = [];
  const received: Buffer[] = [];
  const host = options.host ?? 'origin.test';
  const server = createTlsServer(
    { ...(options.issuer ?? outside).leafFor(options.certificateFor ?? host), ALPNProtocols: ['http/1.1'] },
    (socket) => {
      origins.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', (chunk: Buffer) => received.length < 100 && received.push(chunk));
      origin(socket);
    },
  );
  server.on('tlsClientError', () => undefined);
  const originPort = await listen(server);
  const scheme = options.scheme ?? 'https';
  const gateway = createServer({ allowHalfOpen: true }, (client) => {
    client.on('error', () => undefined);
    client.once('data', (first: Buffer) => {
      client.pause();
      const done = intercept({
        client,
        first,
        upstream: 'https',
        anyPath: false,
        single: false,
        host,
        port: 443,
        authority: scheme === 'https' ? inside : null,
        roots,
        dial: async () => {
          const socket = connectTcp(originPort, '127.0.0.1');
          await once(socket, 'connect');
          return { kind: 'open', socket };
        },
        decide: () => null,
        secrets: [],
        basePath: '',
        count: () => true,
        onRequest: (info) => infos.push(info),
        ...options,
      });
      over.push(done);
    });
  });
  const port = await listen(gateway);
  const clients: Socket[] = [];
  return {
    port,
    infos,
    origins,
    over,
    received: () => Buffer.concat(received).toString('latin1'),
    async client(tls = {}) {
      const socket =
        scheme === 'http'
          ? connectTcp({ port, host: '127.0.0.1', allowHalfOpen: true })
          : connectTls({
              port,
              host: '127.0.0.1',
              servername: host,
              ca: inside.certificatePem,
              allowHalfOpen: true,
              ...tls,
            } as ConnectionOptions);
      clients.push(socket);
      await once(socket, scheme === 'http' ? 'connect' : 'secureConnect');
      return createClient(socket);
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of [...clients, ...origins]) socket.destroy();
      await Promise.all(over);
      server.close();
      gateway.close();
    },
  };
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

export interface Client {
  readonly socket: Socket;
  send(text: string): void;
  /** Waits until the received text matches, and takes all of it. */
  until(pattern: RegExp): Promise<string>;
  /** Everything until the other side closes. */
  rest(): Promise<string>;
  /** One request and its answer, which must have a length. */
  ask(text: string): Promise<{ status: number; head: string; body: string }>;
}

function createClient(socket: Socket): Client {
  let text = '';
  let open = true;
  const watchers = new Set<() => void>();
  const wake = (): void => watchers.forEach((watcher) => watcher());
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    wake();
  });
  for (const event of ['end', 'close', 'error']) {
    socket.on(event, () => {
      open = false;
      wake();
    });
  }
  function wait(done: () => string | null): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = done();
        if (found === null && open) return;
        watchers.delete(look);
        if (found === null) reject(new Error(`closed after ${JSON.stringify(text)}`));
        else resolve(found);
      };
      watchers.add(look);
      look();
    });
  }
  function take(length: number): string {
    const taken = text.slice(0, length);
    text = text.slice(length);
    return taken;
  }
  return {
    socket,
    send: (bytes) => void socket.write(bytes, 'latin1'),
    until: (pattern) => wait(() => (pattern.test(text) ? take(text.length) : null)),
    rest: () => wait(() => (open ? null : take(text.length))),
    async ask(request) {
      socket.write(request, 'latin1');
      const all = await wait(() => {
        const end = text.indexOf('\r\n\r\n');
        if (end === -1) return null;
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
        return text.length < end + 4 + length ? null : take(end + 4 + length);
      });
      const end = all.indexOf('\r\n\r\n');
      return { status: Number(all.slice(9, 12)), head: all.slice(0, end), body: all.slice(end + 4) };
    },
  };
}

/** An origin that answers every head (without a body) by `reply`. */
export function replies(
  reply: (head: string, socket: TLSSocket, index: number) => string | null,
): (socket: TLSSocket) => void {
  let index = 0;
  return (socket) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end);
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
        if (text.length < end + 4 + length) return;
        text = text.slice(end + 4 + length);
        const answer = reply(head, socket, (index += 1));
        if (answer !== null) socket.write(answer, 'latin1');
      }
    });
  };
}

export function ok(body: string, fields = ''): string {
  return `HTTP/1.1 200 OK\r\n${fields}Content-Length: ${Buffer.byteLength(body, 'latin1')}\r\n\r\n${body}`;
}

/** Answers with the request it got, as error pages and debug endpoints do. */
export const echo = replies((head) => ok(head));

export function secret(changes: Partial<LiveSecret> = {}): LiveSecret {
  return {
    name: 'key',
    header: 'authorization',
    value: 'sk-real-0123456789',
    placeholder: 'ags-placeholder-key',
    send: null,
    ...changes,
  };
}
