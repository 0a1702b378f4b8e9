// test/server/place.ts: a developer's machine with `ags serve`, and clients that call it as a browser and as a script do.
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import type { LiveMessage } from '../../src/protocol/api/api.ts';
import type { Caller } from '../harness.ts';
import { createAgentMachine, type AgentMachine } from '../agent-run/place.ts';

export interface Answer<T = unknown> {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: T;
}

export interface RunningServer {
  readonly port: number;
  /** The first line of its output. */
  readonly link: string;
  readonly key: string;
  readonly child: ChildProcess;
  /** Sends the key, as scripts do. */
  call<T>(method: string, path: string, body?: unknown): Promise<Answer<T>>;
  /** Sends exactly these headers. */
  raw(method: string, path: string, headers: Record<string, string>, body?: string): Promise<Answer>;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface ServerMachine extends AgentMachine {
  readonly server: RunningServer;
  serve(more?: readonly string[]): Promise<RunningServer>;
  /** The id of the machine's project, already added. */
  readonly projectId: string;
}

export async function createServerMachine(caller: Caller, files?: Record<string, string>): Promise<ServerMachine> {
  const machine = createAgentMachine(caller, files);
  const servers: RunningServer[] = [];
  const serve = async (more: readonly string[] = []): Promise<RunningServer> => {
    const server = await startServer(machine, more);
    servers.push(server);
    return server;
  };
  const server = await serve();
  const { json } = await server.call<{ id: string }>('POST', '/api/projects', { path: machine.project });
  const dispose = machine[Symbol.dispose].bind(machine);
  return Object.assign(machine, {
    server,
    serve,
    projectId: json.id,
    [Symbol.dispose]() {
      for (const one of servers) one.child.kill('SIGKILL');
      dispose();
    },
  });
}

async function startServer(machine: AgentMachine, more: readonly string[]): Promise<RunningServer> {
  const child = machine.start(['serve', '--port', '0', ...more]);
  const link = await firstLine(child);
  const port = Number(new URL(link).port);
  const key = readFileSync(join(machine.stateDir, 'server/key'), 'utf8').trim();
  const raw: RunningServer['raw'] = (method, path, headers, body) =>
    new Promise((resolve, reject) => {
      // fetch would send the body of a DELETE without its length.
      const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
      const all = { ...length, ...headers };
      const asked = request({ host: '127.0.0.1', port, method, path, headers: all, agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parse(text) }),
        );
      });
      asked.on('error', reject);
      asked.end(body);
    });
  return {
    port,
    link,
    key,
    child,
    raw,
    call: <T>(method: string, path: string, body?: unknown) =>
      raw(
        method,
        path,
        {
          Authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        },
        body === undefined ? undefined : JSON.stringify(body),
      ) as Promise<Answer<T>>,
    stop: (signal = 'SIGTERM') =>
      new Promise((resolve) => {
        child.once('close', () => resolve());
        child.kill(signal);
      }),
  };
}

export function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    let errors = '';
    child.stderr?.on('data', (chunk: Buffer) => (errors += chunk.toString('utf8')));
    child.once('close', () => reject(new Error(`the server ended: ${errors}`)));
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')));
    });
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Opens the link and returns the session cookie. */
export async function enter(server: RunningServer): Promise<string> {
  const { pathname, search, host } = new URL(server.link);
  const { headers } = await server.raw('GET', pathname + search, { host });
  return headers['set-cookie']?.[0]?.split(';')[0] ?? '';
}

export interface Listener {
  readonly messages: LiveMessage[];
  subscribe(topic: string, after: number | null): void;
  unsubscribe(topic: string): void;
  /** Waits for a matching message. */
  until(fits: (message: LiveMessage) => boolean): Promise<LiveMessage>;
  readonly socket: WebSocket;
  /** Waits until the terminal shows the text. */
  sees(text: string): Promise<void>;
  /** Everything that the terminal has drawn. */
  drawn(): string;
  readonly closed: Promise<string>;
}

export function listen(server: RunningServer, headers?: Record<string, string>, path = '/api/live'): Promise<Listener> {
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}${path}`, {
    headers: headers ?? { Authorization: `Bearer ${server.key}` },
  });
  const messages: LiveMessage[] = [];
  const waiting: { fits: (message: LiveMessage) => boolean; found: (message: LiveMessage) => void }[] = [];
  const screen = { text: '', look: (): void => undefined };
  socket.on('message', (data: Buffer, binary) => {
    if (binary) {
      screen.text += data.toString('utf8');
      return screen.look();
    }
    const message = JSON.parse(String(data)) as LiveMessage;
    messages.push(message);
    for (const one of waiting.filter(({ fits }) => fits(message))) {
      waiting.splice(waiting.indexOf(one), 1);
      one.found(message);
    }
  });
  const listener: Listener = {
    messages,
    socket,
    drawn: () => screen.text,
    sees: (text) =>
      new Promise((found) => {
        screen.look = () => void (screen.text.includes(text) && found());
        screen.look();
      }),
    closed: new Promise((resolve) => socket.once('close', (_code, reason) => resolve(String(reason)))),
    subscribe: (topic, after) => socket.send(JSON.stringify({ do: 'subscribe', topic, after })),
    unsubscribe: (topic) => socket.send(JSON.stringify({ do: 'unsubscribe', topic })),
    until: (fits) =>
      new Promise((found) => {
        const there = messages.find(fits);
        if (there !== undefined) found(there);
        else waiting.push({ fits, found });
      }),
  };
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(listener));
    socket.once('unexpected-response', (_request, response) => reject(new Error(`refused: ${response.statusCode}`)));
    socket.once('error', reject);
  });
}
