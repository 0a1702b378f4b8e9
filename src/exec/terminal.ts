// exec/terminal.ts: puts a pseudo-terminal between the user's terminal and the sandbox.
// Invariant: the sandbox never gets the descriptors of the user's terminal, so characters that a program pushes into its own
// terminal (TIOCSTI) do not reach the user's shell. Its output is filtered to sequences that only draw.
import { once } from 'node:events';
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { createScreenFilter } from '../lib/screen-filter.ts';
import { statFields } from '../lib/process/proc-stat.ts';
import type { Stdio } from '../sandbox/backend.ts';

export interface Terminal {
  readonly stdio: Stdio;
  /** Resolves once all output of the sandbox is written and the user's terminal is restored. */
  close(): Promise<void>;
}

type In = NodeJS.ReadStream;
type Out = NodeJS.WriteStream;

/** Replaces descriptors of the caller that are terminals by the pseudo-terminal, and passes on the others unchanged. */
export async function openTerminal(user: { stdin: In; stdout: Out; stderr: Out }): Promise<Terminal> {
  const { open } = (await import('@lydell/node-pty')).default as unknown as { open(options: object): OpenPty };
  const screen = [user.stdout, user.stderr].find((stream) => stream.isTTY);
  const pty = open({ cols: screen?.columns || 80, rows: screen?.rows || 24, encoding: null });
  const slave = openSync(pty.ptsName, constants.O_RDWR | constants.O_NOCTTY);
  pty.slave.destroy();
  await once(pty.slave, 'close');
  closeTwins(slave);
  outliveWindow([user.stdin, user.stdout, user.stderr]);
  const resize = (): void => {
    // Some windows briefly report a size of zero.
    if (screen !== undefined && screen.columns > 0 && screen.rows > 0) pty.resize(screen.columns, screen.rows);
  };
  process.on('SIGWINCH', resize);
  const keyboard = user.stdin.isTTY ? takeKeyboard(user.stdin, (data) => void pty.master.write(data)) : null;
  const target = screen ?? user.stdout;
  const draw = createScreenFilter();
  const pass = (chunk: Buffer): Promise<void> => new Promise((resolve) => target.write(draw(chunk), () => resolve()));
  pty.master.on('data', (chunk: Buffer) => {
    if (!target.write(draw(chunk), () => void pty.master.resume())) pty.master.pause();
  });
  return {
    stdio: {
      stdin: user.stdin.isTTY ? slave : 0,
      stdout: user.stdout.isTTY ? slave : 1,
      stderr: user.stderr.isTTY ? slave : 2,
      terminal: slave,
    },
    async close() {
      // Every process of the sandbox is dead, so only buffered output is left to read.
      closeSync(slave);
      const rest = readRest(pty);
      pty.master.destroy();
      await pass(rest);
      process.off('SIGWINCH', resize);
      keyboard?.release();
    },
  };
}

/** A closed window sends SIGHUP, which is passed on. Reads and writes fail from then on. */
function outliveWindow(streams: readonly (In | Out)[]): void {
  let closed = false;
  // Remove other listeners: they would treat the error as a bug and exit before the sandbox's task is cleaned up.
  for (const stream of streams) if (stream.isTTY) stream.removeAllListeners('error').on('error', () => (closed = true));
  // Node aborts with a stack trace if it cannot restore a closed terminal.
  process.once('exit', () => closed && process.kill(process.pid, 'SIGHUP'));
}

/** In raw mode every key goes inside, including Ctrl-C. A background job must leave the keyboard to the shell, or it is stopped. */
function takeKeyboard(stdin: In, type: (data: Buffer) => void): { release(): void } {
  let taken = false;
  const take = (): void => {
    if (!isForeground()) return;
    // After a stop the shell has set its own modes, and the stream does not know that.
    if (taken) stdin.setRawMode(false);
    else stdin.on('data', type).resume();
    stdin.setRawMode(true);
    taken = true;
  };
  take();
  // The shell's "fg" sends SIGCONT to a stopped job only. A job that ran in the background gets no signal, so poll.
  process.on('SIGCONT', take);
  const look = setInterval(() => (taken ? clearInterval(look) : take()), 200);
  look.unref();
  return {
    release() {
      process.off('SIGCONT', take);
      clearInterval(look);
      if (!taken) return;
      stdin.off('data', type);
      if (isForeground()) stdin.setRawMode(false);
      stdin.pause();
    },
  };
}

function isForeground(): boolean {
  // The foreground group is -1 when the terminal is not the controlling one.
  const [, , group, , , foreground] = statFields(readFileSync('/proc/self/stat', 'latin1'));
  return foreground === group || foreground === '-1';
}

// Reads the descriptor directly: once the last slave is closed, Node takes the first short read for the end, and a read from a
// pseudo-terminal is always short. The kernel returns EIO only after the last byte.
function readRest(pty: OpenPty): Buffer {
  const chunks = [(pty.master.read() as Buffer | null) ?? Buffer.alloc(0)];
  const chunk = Buffer.alloc(65_536);
  try {
    for (let size = readSync(pty.fd, chunk); size > 0; size = readSync(pty.fd, chunk))
      chunks.push(Buffer.from(chunk.subarray(0, size)));
  } catch (error) {
    if (!['EIO', 'EAGAIN'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
  return Buffer.concat(chunks);
}

// The library opens the slave twice and leaks one descriptor. While it is open, the master never sees the end.
function closeTwins(slave: number): void {
  const mine = fstatSync(slave);
  for (const fd of readdirSync('/proc/self/fd').map(Number)) {
    if (fd <= 2 || fd === slave) continue;
    const other = tryStat(fd);
    if (other !== null && other.dev === mine.dev && other.ino === mine.ino) closeSync(fd);
  }
}

/** null for the descriptor of the directory listing itself, which is closed by now. */
function tryStat(fd: number): { dev: number; ino: number } | null {
  try {
    return fstatSync(fd);
  } catch {
    return null;
  }
}

interface OpenPty {
  readonly fd: number;
  readonly ptsName: string;
  readonly master: NodeJS.ReadWriteStream & { destroy(): void };
  readonly slave: NodeJS.ReadStream;
  resize(cols: number, rows: number): void;
}
