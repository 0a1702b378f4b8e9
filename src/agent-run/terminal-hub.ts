// agent-run/terminal-hub.ts: the terminal of an agent that people can come to and leave: whoever attaches sees what is on it, and types.
import type { Socket } from 'node:net';
import { StreamAnswer } from '../lib/process/control.ts';
import { createFrameReader, frame } from '../lib/stream/frames.ts';
import type { Inside } from '../run/join-sandbox.ts';

export interface TerminalHub {
  /** Of the program whose terminal it is. */
  onData(data: Buffer): void;
  attach(program: Inside): StreamAnswer;
  /** It has ended. */
  end(exitCode: number): void;
}

export function createHub(): TerminalHub {
  const guests = new Set<Socket>();
  let recent: Buffer[] = [];
  let kept = 0;
  return {
    onData(data) {
      const copy = Buffer.from(data);
      recent.push(copy);
      kept += copy.length;
      while (kept - (recent[0]?.length ?? 0) > RECENT_BYTES) kept -= recent.shift()?.length ?? 0;
      for (const guest of guests) send(guest, copy);
    },
    attach: (program) =>
      new StreamAnswer((socket) => {
        for (const piece of recent) socket.write(frame('d', piece));
        guests.add(socket);
        socket.once('close', () => guests.delete(socket));
        connectGuest(socket, program);
      }),
    end(exitCode) {
      for (const guest of guests) guest.end(frame('x', Buffer.from([exitCode & 0xff])));
      guests.clear();
      recent = [];
    },
  };
}

/** A program of one guest alone: it ends when they leave, and prints as fast as they read. */
export function guestOnly(start: (onData: (data: Buffer) => void) => Promise<Inside>): StreamAnswer {
  return new StreamAnswer((socket) => {
    let take = (_taken: boolean): void => undefined;
    start((data) => {
      if (!socket.write(frame('d', data))) take(false);
    }).then(
      (program) => {
        take = (taken) => program.take(taken);
        socket.on('drain', () => take(true));
        connectGuest(socket, program);
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
/** A guest that does not read must not fill our memory. */
const MAX_WAITING = 4 * 2 ** 20;

function send(guest: Socket, data: Buffer): void {
  if (guest.writableLength > MAX_WAITING) guest.destroy();
  else guest.write(frame('d', data));
}

function connectGuest(socket: Socket, program: Inside): void {
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
