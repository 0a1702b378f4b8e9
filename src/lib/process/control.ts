// lib/process/control.ts: how a command talks to the runner of a live sandbox: one request, one answer, over a Unix socket in the task's
// directory, which only its owner can enter.
// An answer may also be a stream: then the socket stays open until one side closes it.
// Invariant: neither side waits for ever or reads more than a bounded line, and a runner that is gone is an answer (null).
import { chmodSync, closeSync, constants, openSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { AgsError, ERRORS, type ErrorCode } from '../../protocol/errors.ts';

/** An answer that is a stream: `take` gets the socket after the answer `{"stream":true}`. */
export class StreamAnswer {
  readonly take: (socket: Socket) => void;

  constructor(take: (socket: Socket) => void) {
    this.take = take;
  }
}

/** Closing the server removes the socket. The server does not keep the process alive. */
export function serveControl(directory: string, handler: (request: unknown) => Promise<unknown>): { close(): void } {
  const entry = openSocketPath(directory);
  // A killed runner may have left its socket behind; a task has only one server.
  rmSync(entry.socket, { force: true });
  const open = new Set<Socket>();
  let left = false;
  const leave = (): void => {
    if (!left) entry.close();
    left = true;
  };
  const server = createServer((socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    answer(socket.unref(), handler);
  });
  server.maxConnections = MAX_CONNECTIONS;
  // On file systems without sockets, such as some network file systems, the run continues, but no command can reach it.
  server.on('error', () => {
    if (!server.listening) leave();
  });
  server.listen(entry.socket, () => closeToOthers(entry.socket));
  server.unref();
  return {
    close() {
      for (const socket of open) socket.destroy();
      // Node removes the socket by the path it was created under, so the directory stays open until then.
      server.close(leave);
    },
  };
}

/** Returns the runner's answer; null: there is no runner. Throws the runner's error. */
export async function callControl(directory: string, request: unknown, timeoutMs: number): Promise<unknown> {
  const entry = tryOpenSocketPath(directory);
  if (entry === null) return null;
  try {
    const line = await exchange(entry.socket, `${JSON.stringify(request)}\n`, timeoutMs);
    return line === null ? null : readAnswer(line);
  } finally {
    entry.close();
  }
}

/** Opens a stream to the runner; null: there is no runner. Data that arrived with the first answer can still be read. */
export async function openStream(directory: string, request: unknown, timeoutMs: number): Promise<Socket | null> {
  const entry = tryOpenSocketPath(directory);
  if (entry === null) return null;
  const socket = connect(entry.socket);
  try {
    const line = await firstLine(socket, `${JSON.stringify(request)}\n`, timeoutMs);
    if (line === null) return null;
    const { stream } = readAnswer(line) as { stream?: unknown };
    if (stream === true) return socket;
    throw new Error('the runner gave an unexpected answer');
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    entry.close();
  }
}

function firstLine(socket: Socket, request: string, timeoutMs: number): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const finish = (act: () => void): void => {
      clearTimeout(timer);
      socket.off('data', take).off('error', gone).off('close', gone);
      act();
    };
    const timer = setTimeout(() => finish(() => reject(noAnswer())), timeoutMs);
    const gone = (): void => finish(() => resolve(null));
    let held = Buffer.alloc(0);
    const take = (chunk: Buffer): void => {
      held = Buffer.concat([held, chunk]);
      const end = held.indexOf(0x0a);
      if (end < 0 && held.length <= MAX_BYTES) return;
      socket.pause();
      if (end >= 0 && end + 1 < held.length) socket.unshift(held.subarray(end + 1));
      finish(() => (end < 0 ? reject(tooLong()) : resolve(held.toString('utf8', 0, end))));
    };
    socket.on('data', take).on('error', gone).on('close', gone);
    socket.write(request);
  });
}

function noAnswer(): AgsError {
  return new AgsError('task.busy', 'The sandbox does not answer.', { hint: 'Try again.' });
}

function tooLong(): Error {
  return new Error('the answer of the runner is too long');
}

const MAX_BYTES = 2 ** 20;
const MAX_CONNECTIONS = 64;
const REQUEST_MS = 5000;

/** A socket path has at most 107 bytes, and a task's directory may be longer, so a descriptor names it. */
function openSocketPath(directory: string): { socket: string; close(): void } {
  const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  return { socket: `/proc/self/fd/${fd}/control`, close: () => closeSync(fd) };
}

// The directory already keeps other users out. A task that was just removed has no socket.
function closeToOthers(socket: string): void {
  try {
    chmodSync(socket, 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function tryOpenSocketPath(directory: string): ReturnType<typeof openSocketPath> | null {
  try {
    return openSocketPath(directory);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

function answer(socket: Socket, handler: (request: unknown) => Promise<unknown>): void {
  const reply = (value: unknown): void => {
    if (socket.destroyed) return;
    if (value instanceof StreamAnswer) {
      // The new owner of the socket may need a moment before it listens.
      socket.pause();
      socket.write('{"stream":true}\n');
      value.take(socket);
    } else socket.end(`${JSON.stringify(value ?? null)}\n`);
  };
  // A caller may hang up early.
  socket.on('error', () => socket.destroy());
  socket.setTimeout(REQUEST_MS, () => socket.destroy());
  collectLine(socket, (line) => {
    socket.setTimeout(0);
    if (line === null) return reply(errorAnswer(new AgsError('usage.invalid', 'The request is too long.')));
    void respond(line, handler).then(reply);
  });
}

async function respond(line: string, handler: (request: unknown) => Promise<unknown>): Promise<unknown> {
  try {
    return await handler(parseRequest(line));
  } catch (error) {
    return errorAnswer(error);
  }
}

function parseRequest(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new AgsError('usage.invalid', 'The request is not JSON.', { cause });
  }
}

function errorAnswer(error: unknown): { error: { code: string; message: string; hint?: string | undefined } } {
  if (error instanceof AgsError) return { error: { code: error.code, message: error.message, hint: error.hint } };
  return { error: { code: 'internal', message: error instanceof Error ? error.message : String(error) } };
}

/** Calls `done` once with the first line, without its line feed, or with null if it is too long; never, if the other side hangs up. */
function collectLine(socket: Socket, done: (line: string | null) => void): void {
  const pieces: Buffer[] = [];
  let length = 0;
  const take = (chunk: Buffer): void => {
    const end = chunk.indexOf(0x0a);
    const piece = end < 0 ? chunk : chunk.subarray(0, end);
    pieces.push(piece);
    length += piece.length;
    if (end < 0 && length <= MAX_BYTES) return;
    socket.off('data', take);
    // Further input is discarded, so that the answer can still be sent.
    socket.resume();
    done(length > MAX_BYTES ? null : Buffer.concat(pieces).toString('utf8'));
  };
  socket.on('data', take);
}

function exchange(path: string, request: string, timeoutMs: number): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const finish = (act: () => void): void => {
      clearTimeout(timer);
      socket.destroy();
      act();
    };
    const timer = setTimeout(() => finish(() => reject(noAnswer())), timeoutMs);
    // There is no socket, no listener, or the runner died before it answered.
    socket.on('error', () => finish(() => resolve(null)));
    socket.on('close', () => finish(() => resolve(null)));
    collectLine(socket, (line) => finish(() => (line === null ? reject(tooLong()) : resolve(line))));
    socket.write(request);
  });
}

function readAnswer(line: string): unknown {
  const value: unknown = JSON.parse(line);
  const { error } = (typeof value === 'object' && value !== null ? value : {}) as {
    error?: { code: string; message: string; hint?: string };
  };
  if (error === undefined) return value;
  if (Object.hasOwn(ERRORS, error.code))
    throw new AgsError(error.code as ErrorCode, error.message, { hint: error.hint });
  throw new Error(`the runner failed: ${error.message}`);
}
