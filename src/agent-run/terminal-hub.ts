// agent-run/terminal-hub.ts: shares an agent's terminal between clients. A client that attaches gets the recent output and can type.
// Invariant: a question of the program to its terminal is seen by one client at most, and never again in the recent output.
import type { Socket } from 'node:net';
import { StreamAnswer } from '../lib/process/control.ts';
import { createScreenFilter } from '../lib/screen-filter.ts';
import { withoutQueries } from '../lib/terminal-queries.ts';
import { createFrameReader, frame } from '../lib/stream/frames.ts';
import type { Inside } from '../run/join-sandbox.ts';

export interface TerminalHub {
  /** Output of the program. */
  onData(data: Buffer): void;
  attach(program: Inside): StreamAnswer;
  /** Tells all clients that the program has ended. */
  end(exitCode: number): void;
}

export function createHub(): TerminalHub {
  /** The last is in charge: it attached or typed last, and its terminal answers the program. */
  const clients = new Set<Socket>();
  const draw = createScreenFilter();
  const putInCharge = (client: Socket): void => {
    clients.delete(client);
    clients.add(client);
  };
  let recent: Buffer[] = [];
  let kept = 0;
  let over: Buffer | null = null;
  return {
    onData(data) {
      const drawn = Buffer.from(draw(data));
      const shown = withoutQueries(drawn);
      recent.push(shown);
      kept += shown.length;
      while (kept - (recent[0]?.length ?? 0) > RECENT_BYTES) kept -= recent.shift()?.length ?? 0;
      const inCharge = [...clients].at(-1);
      for (const client of clients) send(client, client === inCharge ? drawn : shown);
    },
    attach: (program) =>
      new StreamAnswer((socket) => {
        for (const piece of recent) socket.write(frame('d', piece));
        if (over !== null) return void socket.end(over);
        clients.add(socket);
        socket.once('close', () => clients.delete(socket));
        const write = (data: Buffer): void => {
          putInCharge(socket);
          program.write(data);
        };
        connect(socket, { ...program, write });
      }),
    end(exitCode) {
      over = frame('x', Buffer.from([exitCode & 0xff]));
      for (const client of clients) client.end(over);
      clients.clear();
    },
  };
}

interface ProgramOutput {
  onData(data: Buffer): void;
  onError(data: Buffer): void;
  onReady(ready: boolean): void;
}

/**
 * Serves a program to one client: it ends when the client disconnects, and prints as fast as the client reads. The client's socket is
 * always read, or its end would go unnoticed; a client with much input waits when it is told to.
 */
export function singleClient(start: (on: ProgramOutput) => Promise<Inside>): StreamAnswer {
  return new StreamAnswer((socket) => {
    let take = (_taken: boolean): void => undefined;
    const pass = (kind: 'd' | 'r', data: Buffer): void => {
      if (!socket.write(frame(kind, data))) take(false);
    };
    start({
      onData: (data) => pass('d', data),
      onError: (data) => pass('r', data),
      onReady: (ready) => void socket.write(frame('s', Buffer.from([ready ? 1 : 0]))),
    }).then(
      (program) => {
        take = (taken) => program.take(taken);
        socket.on('drain', () => take(true));
        connect(socket, program);
        socket.once('close', () => program.close());
        void program.done.then((exitCode) => socket.end(frame('x', Buffer.from([exitCode & 0xff]))));
      },
      (error: unknown) => {
        send(socket, Buffer.from(`ags: ${(error as Error).message}\r\n`));
        socket.end(frame('x', Buffer.from([1])));
      },
    );
  });
}

const RECENT_BYTES = 256 * 1024;
/** A client that does not read must not fill our memory. */
const MAX_WAITING = 4 * 2 ** 20;

function send(client: Socket, data: Buffer): void {
  if (client.writableLength > MAX_WAITING) client.destroy();
  else client.write(frame('d', data));
}

function connect(socket: Socket, program: Inside): void {
  const read = createFrameReader((kind, payload) => {
    if (kind === 'd') program.write(payload);
    else if (kind === 'e') program.end();
    else if (kind === 'w' && payload.length === 4) program.resize(payload.readUInt16BE(0), payload.readUInt16BE(2));
  });
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    if (!read(chunk)) socket.destroy();
  });
  socket.resume();
}
