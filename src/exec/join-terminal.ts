// exec/join-terminal.ts: bytes to and from a terminal in a sandbox that runs: a shell beside the agent, or the agent's own.
import { AgsError } from '../protocol/errors.ts';
import { openStream } from '../lib/process/control.ts';
import { createFrameReader, frame, windowFrame } from '../lib/stream/frames.ts';
import type { StoredTask } from '../store/tasks.ts';

export interface JoinedTerminal {
  write(data: Buffer): void;
  resize(columns: number, rows: number): void;
  /** Whether what comes is taken: while it is not, the program waits. */
  take(taken: boolean): void;
  close(): void;
}

/** What comes from there is hostile: bytes for a terminal, and nothing else. */
export async function joinTerminal(
  stored: StoredTask,
  what: 'shell' | 'attach',
  window: { columns: number; rows: number },
  on: { data(data: Buffer): void; end(exitCode: number | null): void },
): Promise<JoinedTerminal> {
  const socket = await openStream(stored.paths.root, { do: what, ...window, term: 'xterm-256color' }, 10_000);
  if (socket === null)
    throw new AgsError('task.not-found', `${stored.task.name} is not running.`, {
      hint: 'A terminal needs its sandbox: send it a message, and it goes on.',
    });
  let exitCode: number | null = null;
  const read = createFrameReader((kind, payload) => {
    // The reader's memory is used again.
    if (kind === 'd') on.data(Buffer.from(payload));
    if (kind === 'x') exitCode = payload[0] ?? 0;
  });
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    if (!read(chunk)) socket.destroy();
  });
  socket.once('close', () => on.end(exitCode));
  socket.resume();
  socket.write(windowFrame(window.columns, window.rows));
  return {
    write(data) {
      for (let at = 0; at < data.length; at += PIECE) socket.write(frame('d', data.subarray(at, at + PIECE)));
    },
    resize: (columns, rows) => void socket.write(windowFrame(columns, rows)),
    take: (taken) => void (taken ? socket.resume() : socket.pause()),
    close: () => socket.destroy(),
  };
}

const PIECE = 256 * 1024;
