// exec/terminal.ts: a terminal of our own between the user's and the sandbox's.
// Invariant: the user's terminal is never handed through. Its descriptors stay here; inside there is a pseudo-terminal,
// into which a program may push characters as it likes without reaching the user's shell. What it prints may draw, and no more.
import { once } from 'node:events';
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { createScreenFilter } from '../lib/screen-filter.ts';
import { statFields } from '../lib/process/proc-stat.ts';
import type { Stdio } from '../sandbox/backend.ts';

export interface Terminal {
  readonly stdio: Stdio;
  /** Everything the sandbox has written has been passed on; the user's terminal is as it was. */
  close(): Promise<void>;
}

type In = NodeJS.ReadStream;
type Out = NodeJS.WriteStream;

/** Descriptors of the caller that are terminals are replaced by ours, the others are passed on as they are. */
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
    // Some windows have no size for a moment.
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
      // Every process of the sandbox is dead: what is still on its way is all there will be.
      closeSync(slave);
      const rest = readRest(pty);
      pty.master.destroy();
      await pass(rest);
      process.off('SIGWINCH', resize);
      keyboard?.release();
    },
  };
}

/** A window that is closed also sends SIGHUP, which is passed on; who then still reads or writes gets errors only. */
function outliveWindow(streams: readonly (In | Out)[]): void {
  let closed = false;
  // Alone: another listener would take the error for a bug and end us before the sandbox's task is put away.
  for (const stream of streams) if (stream.isTTY) stream.removeAllListeners('error').on('error', () => (closed = true));
  // Node itself aborts, with a stack trace, when it cannot restore a terminal that is gone.
  process.once('exit', () => closed && process.kill(process.pid, 'SIGHUP'));
}

/** In raw mode every key goes inside, Ctrl-C too. A job in the background must leave the keyboard to the shell, or is stopped. */
function takeKeyboard(stdin: In, type: (data: Buffer) => void): { release(): void } {
  let taken = false;
  const take = (): void => {
    if (!isForeground()) return;
    // After a stop the shell has set its own modes, and the stream does not know.
    if (taken) stdin.setRawMode(false);
    else stdin.on('data', type).resume();
    stdin.setRawMode(true);
    taken = true;
  };
  take();
  // The shell's "fg" continues a job that was stopped; one that ran in the background is told nothing.
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

// Read by hand: when the last slave is closed, Node takes the first short read for the end, and a read from a
// pseudo-terminal is always short. The kernel itself says EIO only after the last byte.
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

// The library opens the slave twice and forgets one of the two. While it is open the master never sees the end.
function closeTwins(slave: number): void {
  const mine = fstatSync(slave);
  for (const fd of readdirSync('/proc/self/fd').map(Number)) {
    if (fd <= 2 || fd === slave) continue;
    const other = tryStat(fd);
    if (other !== null && other.dev === mine.dev && other.ino === mine.ino) closeSync(fd);
  }
}

/** Null for the descriptor of the listing itself, which is closed by now. */
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
