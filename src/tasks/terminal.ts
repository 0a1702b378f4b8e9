// tasks/terminal.ts: a terminal of our own between the user's and the sandbox's.
// Invariant: the user's terminal is never handed through. Its descriptors stay here; inside there is a pseudo-terminal,
// into which a program may push characters as it likes without reaching the user's shell.
import { once } from 'node:events';
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync } from 'node:fs';
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
  const screen = [user.stdout, user.stderr].find((stream) => stream.isTTY) as Out | undefined;
  const pty = open({ cols: screen?.columns ?? 80, rows: screen?.rows ?? 24, encoding: null });
  const slave = openSync(pty.ptsName, constants.O_RDWR | constants.O_NOCTTY);
  pty.slave.destroy();
  await once(pty.slave, 'close');
  closeTwins(slave);
  // A window that is closed also sends SIGHUP, which is passed on; what still wants to read or write only gets errors.
  for (const stream of [user.stdin, user.stdout, user.stderr]) if (stream.isTTY) stream.on('error', () => undefined);
  const resize = (): void => {
    if (screen !== undefined) pty.resize(screen.columns, screen.rows);
  };
  process.on('SIGWINCH', resize);
  const keyboard = user.stdin.isTTY ? takeKeyboard(user.stdin, (data) => void pty.master.write(data)) : null;
  const ended = new Promise<void>((resolve) => {
    // Linux says EIO on the master when the last slave is closed.
    pty.master.on('error', () => resolve());
    pty.master.on('end', () => resolve());
    pty.master.on('close', () => resolve());
  });
  pty.master.on('data', (chunk: Buffer) => {
    const target = screen ?? user.stdout;
    if (!target.write(chunk)) {
      pty.master.pause();
      target.once('drain', () => pty.master.resume());
      target.once('error', () => pty.master.resume());
    }
  });
  return {
    stdio: {
      stdin: user.stdin.isTTY ? slave : 0,
      stdout: user.stdout.isTTY ? slave : 1,
      stderr: user.stderr.isTTY ? slave : 2,
      terminal: slave,
    },
    async close() {
      closeSync(slave);
      // Every process of the sandbox is dead, so the end comes as soon as the last of its output has been passed on.
      await ended;
      pty.master.destroy();
      process.off('SIGWINCH', resize);
      keyboard?.release();
    },
  };
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
  // Sent by the shell's "fg".
  process.on('SIGCONT', take);
  return {
    release() {
      process.off('SIGCONT', take);
      if (!taken) return;
      stdin.off('data', type);
      if (isForeground()) stdin.setRawMode(false);
      stdin.pause();
    },
  };
}

function isForeground(): boolean {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  // state, parent, group, session, terminal, foreground group: -1 when the terminal is not the controlling one.
  const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return foreground === group || foreground === '-1';
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
  readonly ptsName: string;
  readonly master: NodeJS.ReadWriteStream & { destroy(): void };
  readonly slave: NodeJS.ReadStream;
  resize(cols: number, rows: number): void;
}
