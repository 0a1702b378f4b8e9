// lib/process/control.ts: how a command talks to the runner of a sandbox that is going on: one question, one answer, on a Unix socket
// in the task's directory, which only its owner can enter.
// A question may also be answered with a stream: then the socket stays, for as long as both sides want it.
// Invariant: neither side waits for ever or takes in more than a bounded line, and a runner that is gone is an answer (null).
import { chmodSync, closeSync, constants, openSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { AgsError, ERRORS, type ErrorCode } from '../../protocol/errors.ts';

/** An answer that is a conversation: it gets the socket after the answer `{"stream":true}`. */
export class StreamAnswer {
  readonly take: (socket: Socket) => void;

  constructor(take: (socket: Socket) => void) {
    this.take = take;
  }
}

/** The socket goes when it is closed, and at the latest with the directory. It does not keep the process alive. */
export function serveControl(directory: string, handler: (request: unknown) => Promise<unknown>): { close(): void } {
  const place = openPlace(directory);
  // A runner that was killed may have left its own behind; whoever serves a task is the only one.
  rmSync(place.socket, { force: true });
  const open = new Set<Socket>();
  let left = false;
  const leave = (): void => {
    if (!left) place.close();
    left = true;
  };
  const server = createServer((socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    answer(socket.unref(), handler);
  });
  server.maxConnections = MAX_CONNECTIONS;
  // Where no socket can be made, as on some network file systems, the run goes on without one: nobody can reach it, no more.
  server.on('error', () => {
    if (!server.listening) leave();
  });
  server.listen(place.socket, () => closeToOthers(place.socket));
  server.unref();
  return {
    close() {
      for (const socket of open) socket.destroy();
      // Node removes the socket by the path it was made under, so the directory stays open until then.
      server.close(leave);
    },
  };
}

/** What the runner answered; null: there is none any more. What it refused is thrown as it was there. */
export async function callControl(directory: string, request: unknown, timeoutMs: number): Promise<unknown> {
  const place = tryOpen(directory);
  if (place === null) return null;
  try {
    const line = await exchange(place.socket, `${JSON.stringify(request)}\n`, timeoutMs);
    return line === null ? null : readAnswer(line);
  } finally {
    place.close();
  }
}

/** A conversation with the runner; null: there is none any more. What came with its first answer is still to be read. */
export async function openStream(directory: string, request: unknown, timeoutMs: number): Promise<Socket | null> {
  const place = tryOpen(directory);
  if (place === null) return null;
  const socket = connect(place.socket);
  try {
    const line = await firstLine(socket, `${JSON.stringify(request)}\n`, timeoutMs);
    if (line === null) return null;
    const { stream } = readAnswer(line) as { stream?: unknown };
    if (stream === true) return socket;
    throw new Error('the runner gave another answer than was asked for');
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    place.close();
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

/** The path of a socket has 107 bytes at most, and a task's directory may be longer: it is named by a descriptor. */
function openPlace(directory: string): { socket: string; close(): void } {
  const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  return { socket: `/proc/self/fd/${fd}/control`, close: () => closeSync(fd) };
}

// The directory keeps others out already; a task that was removed in this very moment has no socket.
function closeToOthers(socket: string): void {
  try {
    chmodSync(socket, 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function tryOpen(directory: string): ReturnType<typeof openPlace> | null {
  try {
    return openPlace(directory);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

function answer(socket: Socket, handler: (request: unknown) => Promise<unknown>): void {
  const reply = (value: unknown): void => {
    if (socket.destroyed) return;
    if (value instanceof StreamAnswer) {
      // Whoever takes it may need a moment before they listen.
      socket.pause();
      socket.write('{"stream":true}\n');
      value.take(socket);
    } else socket.end(`${JSON.stringify(value ?? null)}\n`);
  };
  // A caller that hangs up early is no business of ours.
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

/** The first line, without its end; null when it is too long. Called once, or never if the other side hangs up. */
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
    // What else comes is read and dropped, so that the answer can still be sent.
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
    // No socket, or one that nobody listens on, or a runner that died over our question.
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
