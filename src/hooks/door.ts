// hooks/door.ts: answers an agent's own hooks, which come by HTTP to a door of the sandbox: POST /hook/<event> with their JSON.
// Invariant: everything that comes in is hostile. One request for each connection, bounded in size, number and time; what is not
// understood is refused, and so is what fails on our side.
//
// Any program inside can ask as well: that makes hooks run more often, and nothing else. A verdict goes to whoever asked.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { GateVerdict } from '../protocol/hook.ts';

export interface HookDoorServer {
  enter(socket: Socket): void;
  close(): void;
}

export interface DoorLimits {
  readonly bodyBytes: number;
  /** Of all bodies together that are being read or judged. */
  readonly totalBytes: number;
  readonly connections: number;
  /** For a request to be there in full. */
  readonly requestMs: number;
}

const LIMITS: DoorLimits = { bodyBytes: 8 * 2 ** 20, totalBytes: 64 * 2 ** 20, connections: 64, requestMs: 10_000 };

/** What is printed to those that ask for plain text, as our own client does. */
export const PLAIN_YES = 'allowed\n';

export function serveHookDoor(
  answer: (event: string, json: unknown) => Promise<GateVerdict>,
  limits: DoorLimits = LIMITS,
): HookDoorServer {
  const open = new Map<Socket, { deadline: NodeJS.Timeout; asked: boolean }>();
  let heldBytes = 0;
  let judging = 0;
  const server = createServer({ maxHeaderSize: 16_384, keepAlive: false });

  server.on('clientError', (_error, socket) => socket.destroy());
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const visit = open.get(request.socket);
    if (visit === undefined || visit.asked) return void request.socket.destroy();
    visit.asked = true;
    const reply = (status: number, verdict: GateVerdict): void => {
      clearTimeout(visit.deadline);
      if (!request.socket.destroyed) send(request, response, status, verdict);
    };
    const event = /^\/hook\/([A-Za-z0-9_.-]{1,64})$/.exec(request.url ?? '')?.[1];
    const bytes = lengthOf(request);
    if (event === undefined) return reply(404, no('There is no such address.'));
    if (request.method !== 'POST') return reply(405, no('Only POST is understood.'));
    if (bytes === null) return reply(411, no('The request must say how long it is.'));
    if (bytes > limits.bodyBytes) return reply(413, no(`It has more than ${limits.bodyBytes} bytes.`));
    if (heldBytes + bytes > limits.totalBytes || judging >= limits.connections)
      return reply(503, no('Too much was asked of the hooks at once.'));
    heldBytes += bytes;
    judging++;
    readBody(request, bytes)
      .then((body) => {
        clearTimeout(visit.deadline);
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

/** Only what says its length beforehand: no chunks, whose end is somebody else's word. */
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
