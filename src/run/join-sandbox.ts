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
  options: { window: { columns: number; rows: number } | null; onData(data: Buffer): void },
): Promise<Inside> {
  const socket = await enter(sandbox);
  const { window } = options;
  const words = argv.map((word) => Buffer.from(word).toString('hex'));
  const mode = window === null ? 'pipe 0 0' : `tty ${window.columns} ${window.rows}`;
  socket.write(`${mode} ${words.length}\n${words.map((word) => `${word}\n`).join('')}`);
  let exitCode = CUT_OFF;
  const read = createFrameReader((kind, payload) => {
    if (kind === 'd') options.onData(payload);
    if (kind === 'x') exitCode = payload[0] ?? CUT_OFF;
  });
  socket.on('data', (chunk: Buffer) => {
    if (!read(chunk)) socket.destroy();
  });
  socket.on('end', () => socket.destroy());
  const done = new Promise<number>((resolve) => socket.once('close', () => resolve(exitCode)));
  return {
    write(data) {
      for (let at = 0; at < data.length; at += PIECE) socket.write(frame('d', data.subarray(at, at + PIECE)));
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
