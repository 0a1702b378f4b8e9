// run/join-sandbox.ts: programs that join a running sandbox: a shell of the user, an agent with a terminal, a formatter.
// The host inside (sandbox/io/inside-host.ts) starts them; ags talks to them over a connection into the sandbox's loopback.
// Invariant: the output is bytes and an exit code, both hostile; no wait is unbounded.
import type { Socket } from 'node:net';
import { AgsError } from '../protocol/errors.ts';
import { createFrameReader, frame, windowFrame } from '../lib/stream/frames.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { JOIN_PORT } from '../sandbox/io/inside-host.ts';

export interface Inside {
  write(data: Buffer): void;
  /** Ends its input. */
  end(): void;
  resize(columns: number, rows: number): void;
  /** Whether its output is read; while it is not, the program waits, as at any terminal. */
  take(taken: boolean): void;
  /** Sends SIGHUP, as a closed terminal does; `done` resolves when the program has ended. */
  hangUp(): void;
  /** Its exit code; 255 if it was cut off. */
  readonly done: Promise<number>;
  /** Disconnects without waiting. */
  close(): void;
}

export async function startInside(
  sandbox: Sandbox,
  argv: readonly string[],
  options: {
    /** null: pipes in place of a terminal. */
    window: { columns: number; rows: number } | null;
    onData(data: Buffer): void;
    /** Without a terminal: gets its error output, which is part of its output otherwise. */
    onError?(data: Buffer): void;
    /** False: no more input until true. */
    onReady?(ready: boolean): void;
  },
): Promise<Inside> {
  const socket = await enter(sandbox);
  const { window } = options;
  const words = argv.map((word) => Buffer.from(word).toString('hex'));
  const { onError } = options;
  const mode =
    window === null ? `${onError === undefined ? 'pipe' : 'split'} 0 0` : `tty ${window.columns} ${window.rows}`;
  socket.write(`${mode} ${words.length}\n${words.map((word) => `${word}\n`).join('')}`);
  let exitCode = CUT_OFF;
  // The program may not read its input, and the host inside may not read at all.
  let [room, sent, told] = [true, true, true];
  const tellReady = (): void => {
    if ((room && sent) === told) return;
    told = room && sent;
    options.onReady?.(told);
  };
  const read = createFrameReader((kind, payload) => {
    if (kind === 'd') options.onData(payload);
    if (kind === 'r') onError?.(payload);
    if (kind === 's') {
      room = payload[0] === 1;
      tellReady();
    }
    if (kind === 'x') exitCode = payload[0] ?? CUT_OFF;
  });
  socket.on('data', (chunk: Buffer) => {
    if (!read(chunk)) socket.destroy();
  });
  socket.on('end', () => socket.destroy());
  socket.on('drain', () => {
    sent = true;
    tellReady();
  });
  const done = new Promise<number>((resolve) => socket.once('close', () => resolve(exitCode)));
  return {
    write(data) {
      for (let at = 0; at < data.length; at += PIECE) sent = socket.write(frame('d', data.subarray(at, at + PIECE)));
      tellReady();
    },
    end: () => void socket.write(frame('e')),
    hangUp: () => void socket.write(frame('h')),
    resize: (columns, rows) => void socket.write(windowFrame(columns, rows)),
    take: (taken) => void (taken ? socket.resume() : socket.pause()),
    done,
    close: () => socket.destroy(),
  };
}

const CUT_OFF = 255;
const PIECE = 256 * 1024;

/** The host inside may not be listening yet. */
async function enter(sandbox: Sandbox): Promise<Socket> {
  for (let left = TRIES; ; left--) {
    try {
      const socket = await sandbox.connect(JOIN_PORT);
      socket.on('error', () => socket.destroy());
      return socket;
    } catch (cause) {
      if (left === 0)
        throw new AgsError('backend.failed', 'The sandbox cannot be joined: nothing answers inside.', { cause });
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }
}

const TRIES = 200;
