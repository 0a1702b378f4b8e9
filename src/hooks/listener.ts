// hooks/listener.ts: answers an agent's own hooks, which send HTTP to a listener of the sandbox: POST /hook/<event> with their JSON.
// Invariant: all input is hostile. One request per connection, bounded in size, number and time; requests that cannot be parsed
// are refused, and so are those that fail on our side.
//
// Any program inside can ask as well. That only makes hooks run more often: a verdict goes back to its own request.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { GateVerdict } from '../protocol/hook.ts';

export interface HookListenerServer {
  enter(socket: Socket): void;
  close(): void;
}

export interface ListenerLimits {
  readonly bodyBytes: number;
  /** All bodies together that are being read or judged. */
  readonly totalBytes: number;
  readonly connections: number;
  /** Time until a request must be complete. */
  readonly requestMs: number;
}

const LIMITS: ListenerLimits = { bodyBytes: 8 * 2 ** 20, totalBytes: 64 * 2 ** 20, connections: 64, requestMs: 10_000 };

/** The positive answer to clients that accept plain text, such as client.pl. */
export const PLAIN_YES = 'allowed\n';

export function serveHookListener(
  answer: (event: string, json: unknown) => Promise<GateVerdict>,
  limits: ListenerLimits = LIMITS,
): HookListenerServer {
  const open = new Map<Socket, { deadline: NodeJS.Timeout; asked: boolean }>();
  let heldBytes = 0;
  let judging = 0;
  const server = createServer({ maxHeaderSize: 16_384, keepAlive: false });

  server.on('clientError', (_error, socket) => socket.destroy());
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const connection = open.get(request.socket);
    if (connection === undefined || connection.asked) return void request.socket.destroy();
    connection.asked = true;
    const reply = (status: number, verdict: GateVerdict): void => {
      clearTimeout(connection.deadline);
      if (!request.socket.destroyed) send(request, response, status, verdict);
    };
    const event = /^\/hook\/([A-Za-z0-9_.-]{1,64})$/.exec(request.url ?? '')?.[1];
    const bytes = lengthOf(request);
    if (event === undefined) return reply(404, no('There is no such address.'));
    if (request.method !== 'POST') return reply(405, no('Only POST is supported.'));
    if (bytes === null) return reply(411, no('The request has no content length.'));
    if (bytes > limits.bodyBytes) return reply(413, no(`It has more than ${limits.bodyBytes} bytes.`));
    if (heldBytes + bytes > limits.totalBytes || judging >= limits.connections)
      return reply(503, no('Too many requests to the hooks at once.'));
    heldBytes += bytes;
    judging++;
    readBody(request, bytes)
      .then((body) => {
        clearTimeout(connection.deadline);
        return answer(event, JSON.parse(body.toString('utf8')));
      })
      .then(
        (verdict) => reply(200, verdict),
        (error: unknown) => reply(400, no(`The hooks could not be asked, so this is refused: ${messageOf(error)}`)),
      )
      .finally(() => {
        heldBytes -= bytes;
        judging--;
      });
  });

  return {
    enter(socket) {
      if (open.size >= limits.connections) return void socket.destroy();
      const deadline = setTimeout(() => socket.destroy(), limits.requestMs);
      open.set(socket, { deadline, asked: false });
      socket.on('error', () => socket.destroy());
      socket.once('close', () => {
        clearTimeout(deadline);
        open.delete(socket);
      });
      server.emit('connection', socket);
    },
    close() {
      for (const socket of open.keys()) socket.destroy();
      server.close();
    },
  };
}

function no(reason: string): GateVerdict {
  return { allow: false, reason };
}

/** Accepts only requests with a content length, because a client controls where chunks end. */
function lengthOf({ headers }: IncomingMessage): number | null {
  const written = headers['content-length'];
  return headers['transfer-encoding'] === undefined && written !== undefined && /^\d{1,9}$/.test(written)
    ? Number(written)
    : null;
}

function readBody(request: IncomingMessage, bytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      const body = Buffer.concat(chunks);
      if (body.length === bytes) resolve(body);
      else reject(new Error('the request is incomplete'));
    });
    request.once('close', () => reject(new Error('the request is incomplete')));
  });
}

function send(request: IncomingMessage, response: ServerResponse, status: number, verdict: GateVerdict): void {
  const plain = request.headers.accept === 'text/plain';
  const body = plain ? (verdict.allow ? PLAIN_YES : `${verdict.reason}\n`) : `${JSON.stringify(verdict)}\n`;
  response.writeHead(plain && status === 200 && !verdict.allow ? 403 : status, {
    'content-type': plain ? 'text/plain; charset=utf-8' : 'application/json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  });
  response.end(body);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
