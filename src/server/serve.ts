// server/serve.ts: serves the API and the page on one port.
// Invariants: every request passes the guard before any other code reads it. The server owns no run, so stopping it stops none.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { join } from 'node:path';
import { WebSocketServer, type WebSocket } from 'ws';
import { AgsError } from '../protocol/errors.ts';
import { findWork } from '../agent-run/find-work.ts';
import { findTask } from '../queries/find-task.ts';
import { inWords } from '../run/disk-errors.ts';
import type { HostContext } from '../run/host-context.ts';
import { createCheckRuns } from './check-runs.ts';
import { createChangeCache } from './change-cache.ts';
import { enter } from './sign-in/open-link.ts';
import { openSessions, type Sessions } from './sign-in/sessions.ts';
import { answerCall, sendError, sendFile, sendJson } from './exchange.ts';
import { isSignedIn, hasKey, requireSignedIn, requireHost, requireOwnOrigin, type Address } from './sign-in/guard.ts';
import { createLive, type Live } from './live/live.ts';
import { serveLiveSocket, serveLiveStream } from './live/stream.ts';
import { openPage, plainPage, type Page } from './page.ts';
import { sendRawLog, taskOfRawLog } from './raw-log.ts';
import { errorAnswer, Refusal } from './routes/refusal.ts';
import { createRouter, type Found, type Api } from './routes/route.ts';
import { ROUTES } from './routes/routes.ts';
import { createTerminals, type Terminals } from './terminal.ts';
import { createTurns } from './turns.ts';

export interface ServeOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly version: string;
  /** Called for unexpected errors. */
  onBug(error: unknown): void;
  /** The directory of the built page. */
  readonly page: string;
  /** Required for every address except loopback. */
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer };
  /** Host names accepted besides the address itself. */
  readonly names?: readonly string[];
}

export interface Served {
  readonly port: number;
  readonly url: string;
  /** A link that signs one browser in, once. */
  signInUrl(): string;
  close(): Promise<void>;
}

interface Serving {
  readonly address: Address;
  readonly sessions: Sessions;
  readonly live: Live;
  readonly api: Api;
  readonly page: Page;
  readonly terminals: Terminals;
  readonly find: (method: string, path: string) => Found;
}

export async function serve(context: HostContext, options: ServeOptions): Promise<Served> {
  const sessions = openSessions(serverDir(context), () => context.now().getTime());
  const live = createLive(context);
  const checks = createCheckRuns(context, {
    changed: (task) => void live.taskIndex.touch(task).catch(() => undefined),
    bug: options.onBug,
  });
  const api: Api = {
    checks,
    context,
    version: options.version,
    taskIndex: live.taskIndex,
    knownProjects: live.knownProjects,
    changes: createChangeCache(),
    seq: (topic) => live.seq(topic),
    async task(id, { work } = { work: false }) {
      const stored = await (work ? findWork(context, id) : findTask(context, id));
      if (stored.task.id === id) return stored;
      throw new AgsError('task.not-found', `There is no task "${id}".`);
    },
    inTurn: createTurns(),
  };
  const terminals = createTerminals();
  const serving: { now: Serving | null } = { now: null };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const { now } = serving;
    if (now === null) return void response.destroy();
    answer(now, request, response).catch((thrown: unknown) => {
      const error = inWords(context, thrown);
      if (errorAnswer(error).status === 500) options.onBug(error);
      sendError(response, error);
    });
  };
  const server = await makeServer(options, onRequest);
  server.headersTimeout = 10_000;
  server.requestTimeout = 60_000;
  server.maxConnections = 1000;
  // Idle connections without a sign-in are closed. Signed-in clients may wait for long operations.
  server.setTimeout(PATIENCE_MS);
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 2 ** 20, perMessageDeflate: false });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    if (serving.now === null) return void socket.destroy();
    upgrade(serving.now, request).then(
      (use) => sockets.handleUpgrade(request, socket, head, use),
      (error: unknown) => refuseUpgrade(socket, error),
    );
  });
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  const address = addressOf(options, sessions.name, port);
  serving.now = { address, sessions, live, api, terminals, page: openPage(options.page), find: createRouter(ROUTES) };
  const url = `${address.scheme}://${address.browser}`;
  // Reading the tasks now makes the first request fast.
  void live.ready().catch(() => undefined);
  return {
    port,
    url,
    signInUrl: () => `${url}/enter?token=${sessions.makeToken()}`,
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

export function serverDir({ stateDir }: Pick<HostContext, 'stateDir'>): string {
  return join(stateDir, 'server');
}

async function answer(serving: Serving, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { headers } = request;
  const method = request.method ?? '';
  requireHost(serving.address, headers);
  const url = readUrl(request);
  const path = url.pathname;
  if (path === '/enter') return enter(serving, url.searchParams.get('token') ?? '', request, response);
  if (path !== '/api' && !path.startsWith('/api/')) return showPage(serving, method, path, request, response);
  const stream = path === '/api/events' ? ('sse' as const) : undefined;
  requireOwnOrigin(serving.address, { method, headers, ...(stream === undefined ? {} : { stream }) });
  const question = path === '/api/proof' ? url.searchParams.get('question') : null;
  if (question !== null && /^[0-9a-f]{32}$/.test(question))
    return sendJson(response, 200, { answer: serving.sessions.prove(addressAt(request.socket), question) });
  requireSignedIn(serving.sessions, headers);
  request.socket.setTimeout(0);
  if (stream !== undefined && method === 'GET') {
    return serveLiveStream(serving.live, url.searchParams, request, response);
  }
  // Another command of the same user asks for a sign-in link.
  if (path === '/api/entries' && method === 'POST' && hasKey(serving.sessions, headers))
    return sendJson(response, 200, { path: `/enter?token=${serving.sessions.makeToken()}` });
  const log = method === 'GET' ? taskOfRawLog(path) : null;
  if (log !== null) return sendRawLog(await serving.api.task(log), response);
  const found = serving.find(method, path);
  sendJson(response, 200, await answerCall(serving.api, found, url.searchParams, request));
}

/** The local address of a connection, in the form that the client used. */
function addressAt({ localAddress = '', localPort = 0 }: Socket): string {
  return `${localAddress}:${localPort}`;
}

function showPage(
  serving: Serving,
  method: string,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (method !== 'GET' && method !== 'HEAD') throw new Refusal(405, 'request.method', `${method} is not allowed here.`);
  const file = serving.page.file(path);
  if (file !== null) return sendFile(response, file);
  if (path.startsWith('/assets/')) throw new Refusal(404, 'request.unknown', 'There is nothing at this address.');
  if (!isSignedIn(serving.sessions, request.headers))
    return sendFile(response, plainPage('You are not signed in.', 'Open the page with: ags web'), 401);
  sendFile(response, serving.page.index());
}

/** Chooses the handler of the WebSocket once it is open. */
async function upgrade(
  { address, sessions, live, api, terminals }: Serving,
  request: IncomingMessage,
): Promise<(socket: WebSocket) => void> {
  requireHost(address, request.headers);
  requireOwnOrigin(address, { method: 'GET', headers: request.headers, stream: 'socket' });
  requireSignedIn(sessions, request.headers);
  const path = readUrl(request).pathname;
  if (path === '/api/live') return (socket) => serveLiveSocket(live, socket);
  const id = /^\/api\/tasks\/([a-z0-9][a-z0-9-]{0,62})\/terminal$/.exec(path)?.[1];
  if (id === undefined) throw new Refusal(404, 'request.unknown', 'There is nothing at this address.');
  const stored = await api.task(id);
  return (socket) => void terminals.serve(stored, socket);
}

function refuseUpgrade(socket: Duplex, error: unknown): void {
  const { status, body } = errorAnswer(error);
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    // A client that never closes its side would keep the socket open forever.
    () => socket.destroy(),
  );
}

/** Accepts a path only, as browsers and curl send it, not a full URL. */
function readUrl(request: IncomingMessage): URL {
  const target = request.url ?? '';
  if (!target.startsWith('/') || target.startsWith('//') || target.length > 8192)
    throw new Refusal(400, 'request.invalid', 'Invalid request target.');
  const url = new URL(`http://here${target}`);
  // Refuses dot segments in any encoding, and anything else that the URL parser would rewrite.
  if (url.pathname !== target.split('?')[0]) throw new Refusal(400, 'request.invalid', 'Invalid request target.');
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
    throw new AgsError('usage.invalid', `The certificate or its key cannot be used: ${(error as Error).message}`, {
      hint: 'Both must be PEM files ("-----BEGIN ..."), and the key must belong to the certificate.',
    });
  }
}

function listen(server: Server, { host, port }: ServeOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? new AgsError('usage.invalid', `Port ${port} is in use.`, {
              hint: 'If ags serves there already, open it: ags web. Otherwise choose another port: --port 7781',
            })
          : error,
      ),
    );
    // Later errors concern single connections that could not be accepted.
    server.listen(port, host, () => resolve()).once('listening', () => server.on('error', () => undefined));
  });
}

function addressOf({ host, tls, names = [] }: ServeOptions, ownName: string, port: number): Address {
  const scheme = tls === undefined ? 'http' : 'https';
  const own = LOOPBACK.includes(host) ? [ownName, ...LOOPBACK] : [host, ...names];
  const shown = (name: string): string => (name.includes(':') ? `[${name}]` : name);
  // Clients omit the scheme's default port.
  const usual = port === (scheme === 'http' ? 80 : 443);
  const [browser = '', ...more] = own.flatMap((name) => [...(usual ? [shown(name)] : []), `${shown(name)}:${port}`]);
  return { scheme, browser, hosts: [browser, ...more] };
}

const PATIENCE_MS = 15_000;

export const LOOPBACK: readonly string[] = ['127.0.0.1', 'localhost', '::1'];
