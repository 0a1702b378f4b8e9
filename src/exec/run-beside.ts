// exec/run-beside.ts: runs a command beside the agent of a running task, in the same sandbox, without a terminal (`ags exec --in`).
// Invariant: input, output and errors stay apart and unchanged; on a terminal, output can only draw, and nothing of it stays in force.
import { once } from 'node:events';
import { AgsError } from '../protocol/errors.ts';
import { openStream } from '../lib/process/control.ts';
import { createScreenFilter } from '../lib/screen-filter.ts';
import { withoutQueries } from '../lib/terminal-queries.ts';
import { createFrameReader, frame } from '../lib/stream/frames.ts';
import type { StoredTask } from '../store/tasks.ts';

export interface Streams {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

/** Returns the command's exit code. The command is hung up when this process ends. */
export async function runBeside(stored: StoredTask, argv: readonly string[], streams: Streams): Promise<number> {
  const { name } = stored.task;
  const socket = await openStream(stored.paths.root, { do: 'exec', argv }, 10_000);
  if (socket === null)
    throw new AgsError('task.not-found', `${name} is not running, so nothing can be run in its sandbox.`, {
      hint: `Its state: ags show ${name}. To continue it: ags send ${name} "<message>"`,
    });
  let exitCode: number | null = null;
  const print = { d: printTo(streams.stdout), r: printTo(streams.stderr) };
  const read = createFrameReader((kind, payload) => {
    if (kind === 'x') exitCode = payload[0] ?? 0;
    if (kind === 's') streams.stdin[payload[0] === 1 ? 'resume' : 'pause']();
    if (kind !== 'd' && kind !== 'r') return;
    // The reader reuses its buffer.
    const written = print[kind](Buffer.from(payload));
    if (written === null) return;
    socket.pause();
    void written.then(() => socket.resume());
  });
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    if (!read(chunk)) socket.destroy();
  });
  // The command may end while its input is still being sent: that error is none.
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  streams.stdin.on('data', (data: Buffer) => {
    for (let at = 0; at < data.length; at += PIECE) socket.write(frame('d', data.subarray(at, at + PIECE)));
  });
  streams.stdin.on('end', () => void socket.write(frame('e')));
  // For example a closed standard input.
  streams.stdin.on('error', () => void socket.write(frame('e')));
  socket.resume();
  await closed;
  streams.stdin.removeAllListeners('data').pause();
  if (exitCode === null)
    throw new AgsError('backend.failed', `The sandbox of ${name} ended before the command did.`, {
      hint: `Its state: ags show ${name}`,
    });
  return exitCode;
}

const PIECE = 256 * 1024;

/** Returns null, or a promise if the reader of the output is slow. */
function printTo(stream: NodeJS.WriteStream): (data: Buffer) => Promise<unknown> | null {
  const draw = stream.isTTY ? createDrawing() : null;
  return (data) => (stream.write(draw === null ? data : draw(data)) ? null : once(stream, 'drain'));
}

/**
 * The command has no terminal, so it asks none, and changes none: the answer to a question would be typed into the user's shell, and
 * nobody would take back a title, a mode or another alphabet. Modes and titles that the filter has passed are whole.
 */
function createDrawing(): (data: Buffer) => Buffer {
  const filter = createScreenFilter();
  return (data) => {
    const drawn = withoutQueries(filter(data));
    return drawn.includes(0x1b) ? Buffer.from(drawn.toString('latin1').replaceAll(LASTING, ''), 'latin1') : drawn;
  };
}

const LASTING =
  // eslint-disable-next-line no-control-regex
  /\x1b(?:\[[<=>?][^@-~]*[@-~]|\[[0-9;]*(?:[hlr]| q)|\][^\x1b]*\x1b\\|[=>]|[()*+-/][ -~])/g;
