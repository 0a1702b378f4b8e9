// exec/join-terminal.ts: connects to a terminal in a running sandbox: a new shell beside the agent, or the agent's own terminal.
import { AgsError } from '../protocol/errors.ts';
import { openStream } from '../lib/process/control.ts';
import { createFrameReader, frame, windowFrame } from '../lib/stream/frames.ts';
import type { StoredTask } from '../store/tasks.ts';

export interface JoinedTerminal {
  write(data: Buffer): void;
  resize(columns: number, rows: number): void;
  /** Pauses (false) or resumes (true) the program's output. While it is paused, the program waits. */
  take(taken: boolean): void;
  close(): void;
}

/** The received data is hostile: use it as terminal output only. */
export async function joinTerminal(
  stored: StoredTask,
  what: 'shell' | 'attach',
  window: { columns: number; rows: number },
  on: { data(data: Buffer): void; end(exitCode: number | null): void },
): Promise<JoinedTerminal> {
  const socket = await openStream(stored.paths.root, { do: what, ...window, term: 'xterm-256color' }, 10_000);
  if (socket === null)
    throw new AgsError('task.not-found', `${stored.task.name} is not running.`, {
      hint: `Send it a message to start it again: ags send ${stored.task.name} "<message>"`,
    });
  let exitCode: number | null = null;
  const read = createFrameReader((kind, payload) => {
    // The reader reuses its buffer.
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
