// server/serve.ts: API and page on one port of this machine.
// Invariants: every request passes the guard before anything else looks at it; nothing here owns a run, so that ending this process
// ends none.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { join } from 'node:path';
import { WebSocketServer, type WebSocket } from 'ws';
import { AgsError } from '../protocol/errors.ts';
import { findTask } from '../queries/find-task.ts';
import { inWords } from '../run/disk-errors.ts';
import type { World } from '../run/host-context.ts';
import { createCheckRuns } from './check-runs.ts';
import { createChangeCache } from './change-cache.ts';
import { enter } from './sign-in/open-link.ts';
import { openEntry, type Entry } from './sign-in/sessions.ts';
import { answerCall, sendError, sendFile, sendJson } from './exchange.ts';
import { hasEntered, hasKey, requireEntered, requireHost, requireOwnOrigin, type Address } from './sign-in/guard.ts';
import { createLive, type Live } from './live/live.ts';
import { serveLiveSocket } from './live/socket.ts';
import { serveLiveStream } from './live/stream.ts';
import { openPage, plainPage, type Page } from './page.ts';
import { sendRawLog, taskOfRawLog } from './raw-log.ts';
import { errorAnswer, Refusal } from './routes/refusal.ts';
import type { Desk } from './routes/route.ts';
import { createRouter, type Found } from './routes/router.ts';
import { ROUTES } from './routes/routes.ts';
import { createTerminals, type Terminals } from './terminal.ts';
import { createTurns } from './turns.ts';

export interface ServeOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly version: string;
  /** Something went wrong that should not have. */
  onBug(error: unknown): void;
  /** Where the built page is. */
  readonly page: string;
  /** Needed for any address but loopback. */
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer };
  /** Names under which it is reached besides its address. */
  readonly names?: readonly string[];
}

export interface Served {
  readonly port: number;
  readonly url: string;
  /** A link that lets one browser in, once. */
  entryUrl(): string;
  close(): Promise<void>;
}

interface Hall {
  readonly address: Address;
  readonly entry: Entry;
  readonly live: Live;
  readonly desk: Desk;
  readonly page: Page;
  readonly terminals: Terminals;
  readonly find: (method: string, path: string) => Found;
}

export async function serve(world: World, options: ServeOptions): Promise<Served> {
  const entry = openEntry(serverDir(world), () => world.now().getTime());
  const live = createLive(world);
  const checks = createCheckRuns(world, {
    changed: (task) => void live.board.touch(task).catch(() => undefined),
    bug: options.onBug,
  });
  const desk: Desk = {
    checks,
    world,
    version: options.version,
    board: live.board,
    places: live.places,
    changes: createChangeCache(),
    seq: (topic) => live.seq(topic),
    async task(id, task = { work: false }) {
      const stored = await findTask(world, id, task);
      if (stored.task.id === id) return stored;
      throw new AgsError('task.not-found', `There is no task "${id}".`);
    },
    inTurn: createTurns(),
  };
  const terminals = createTerminals();
  const hall: { now: Hall | null } = { now: null };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const { now } = hall;
    if (now === null) return void response.destroy();
    answer(now, request, response).catch((thrown: unknown) => {
      const error = inWords(world, thrown);
      if (errorAnswer(error).status === 500) options.onBug(error);
      sendError(response, error);
    });
  };
  const server = await makeServer(options, onRequest);
  server.headersTimeout = 10_000;
  server.requestTimeout = 60_000;
  server.maxConnections = 1000;
  // Who neither says nor takes anything is hung up on. Who has entered may wait for what takes long.
  server.setTimeout(PATIENCE_MS);
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 2 ** 20, perMessageDeflate: false });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    if (hall.now === null) return void socket.destroy();
    upgrade(hall.now, request).then(
      (use) => sockets.handleUpgrade(request, socket, head, use),
      (error: unknown) => refuseUpgrade(socket, error),
    );
  });
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  const address = addressOf(options, entry.name, port);
  hall.now = { address, entry, live, desk, terminals, page: openPage(options.page), find: createRouter(ROUTES) };
  const url = `${address.scheme}://${address.browser}`;
  // The first list is there before anybody asks for it.
  void live.ready().catch(() => undefined);
  return {
    port,
    url,
    entryUrl: () => `${url}/enter?token=${entry.makeToken()}`,
    async close() {
      await checks.close();
      live.close();
      terminals.close();
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

export function serverDir({ stateDir }: Pick<World, 'stateDir'>): string {
  return join(stateDir, 'server');
}

async function answer(hall: Hall, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { headers } = request;
  const method = request.method ?? '';
  requireHost(hall.address, headers);
  const url = readUrl(request);
  const path = url.pathname;
  if (path === '/enter') return enter(hall, url.searchParams.get('token') ?? '', request, response);
  if (path !== '/api' && !path.startsWith('/api/')) return showPage(hall, method, path, request, response);
  const stream = path === '/api/events' ? ('sse' as const) : undefined;
  requireOwnOrigin(hall.address, { method, headers, ...(stream === undefined ? {} : { stream }) });
  const question = path === '/api/proof' ? url.searchParams.get('question') : null;
  if (question !== null && /^[0-9a-f]{32}$/.test(question))
    return sendJson(response, 200, { answer: hall.entry.prove(addressAt(request.socket), question) });
  requireEntered(hall.entry, headers);
  request.socket.setTimeout(0);
  if (stream !== undefined && method === 'GET') {
    return serveLiveStream(hall.live, url.searchParams, request, response);
  }
  // Another command of the same user wants a link for a browser.
  if (path === '/api/entries' && method === 'POST' && hasKey(hall.entry, headers))
    return sendJson(response, 200, { path: `/enter?token=${hall.entry.makeToken()}` });
  const log = method === 'GET' ? taskOfRawLog(path) : null;
  if (log !== null) return sendRawLog(await hall.desk.task(log), response);
  const found = hall.find(method, path);
  sendJson(response, 200, await answerCall(hall.desk, found, url.searchParams, request));
}

/** Where somebody has come to, as they would call it. */
function addressAt({ localAddress = '', localPort = 0 }: Socket): string {
  return `${localAddress}:${localPort}`;
}

function showPage(hall: Hall, method: string, path: string, request: IncomingMessage, response: ServerResponse): void {
  if (method !== 'GET' && method !== 'HEAD')
    throw new Refusal(405, 'request.method', `${method} is not possible here.`);
  const file = hall.page.file(path);
  if (file !== null) return sendFile(response, file);
  if (path.startsWith('/assets/')) throw new Refusal(404, 'request.unknown', 'There is nothing at this address.');
  if (!hasEntered(hall.entry, request.headers))
    return sendFile(response, plainPage('You have not entered here yet.', 'Open it with: ags web'), 401);
  sendFile(response, hall.page.index());
}

/** What the socket is for, once it is open. */
async function upgrade(
  { address, entry, live, desk, terminals }: Hall,
  request: IncomingMessage,
): Promise<(socket: WebSocket) => void> {
  requireHost(address, request.headers);
  requireOwnOrigin(address, { method: 'GET', headers: request.headers, stream: 'socket' });
  requireEntered(entry, request.headers);
  const path = readUrl(request).pathname;
  if (path === '/api/live') return (socket) => serveLiveSocket(live, socket);
  const id = /^\/api\/tasks\/([a-z0-9][a-z0-9-]{0,62})\/terminal$/.exec(path)?.[1];
  if (id === undefined) throw new Refusal(404, 'request.unknown', 'There is nothing at this address.');
  const stored = await desk.task(id);
  return (socket) => void terminals.serve(stored, socket);
}

function refuseUpgrade(socket: Duplex, error: unknown): void {
  const { status, body } = errorAnswer(error);
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    // Whoever does not hang up is hung up on: nothing else would ever close it.
    () => socket.destroy(),
  );
}

/** Only what a browser or curl sends: a path, not a whole address. */
function readUrl(request: IncomingMessage): URL {
  const target = request.url ?? '';
  if (!target.startsWith('/') || target.startsWith('//') || target.length > 8192)
    throw new Refusal(400, 'request.invalid', 'This is no address of this server.');
  const url = new URL(`http://here${target}`);
  // Dots that mean another address, in whatever spelling, and what a reader would have to guess at.
  if (url.pathname !== target.split('?')[0])
    throw new Refusal(400, 'request.invalid', 'This is no address of this server.');
  return url;
}

async function makeServer(
  { tls }: ServeOptions,
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Server> {
  const limits = { maxHeaderSize: 16 * 1024, connectionsCheckingInterval: 5000 };
  if (tls === undefined) return createServer(limits, onRequest);
  const { createServer: createSecure } = await import('node:https');
  try {
    return createSecure({ ...tls, minVersion: 'TLSv1.2', ...limits }, onRequest);
  } catch (error) {
    throw new AgsError('usage.invalid', `The certificate and its key cannot be used: ${(error as Error).message}`, {
      hint: 'Both are PEM files ("-----BEGIN ..."), and the key is that of the certificate.',
    });
  }
}

function listen(server: Server, { host, port }: ServeOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? new AgsError('usage.invalid', `Port ${port} is taken.`, {
              hint: 'If ags serves there already, open it with: ags web. Otherwise take another one: --port 7781',
            })
          : error,
      ),
    );
    // Later ones are about a connection that could not be taken.
    server.listen(port, host, () => resolve()).once('listening', () => server.on('error', () => undefined));
  });
}

function addressOf({ host, tls, names = [] }: ServeOptions, ownName: string, port: number): Address {
  const scheme = tls === undefined ? 'http' : 'https';
  const own = LOOPBACK.includes(host) ? [ownName, ...LOOPBACK] : [host, ...names];
  const shown = (name: string): string => (name.includes(':') ? `[${name}]` : name);
  // The port of the scheme is not said.
  const usual = port === (scheme === 'http' ? 80 : 443);
  const [browser = '', ...more] = own.flatMap((name) => [...(usual ? [shown(name)] : []), `${shown(name)}:${port}`]);
  return { scheme, browser, hosts: [browser, ...more] };
}

const PATIENCE_MS = 15_000;

export const LOOPBACK: readonly string[] = ['127.0.0.1', 'localhost', '::1'];
