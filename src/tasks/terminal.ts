// tasks/terminal.ts: a terminal of our own between the user's and the sandbox's.
// Invariant: the user's terminal is never handed through. Its descriptors stay here; inside there is a pseudo-terminal,
// into which a program may push characters as it likes without reaching the user's shell.
import { closeSync, constants, openSync } from 'node:fs';
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
  const resize = (): void => {
    if (screen !== undefined) pty.resize(screen.columns, screen.rows);
  };
  const type = (data: Buffer): void => void pty.master.write(data);
  process.on('SIGWINCH', resize);
  if (user.stdin.isTTY) {
    user.stdin.setRawMode(true);
    user.stdin.on('data', type);
    user.stdin.resume();
  }
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
      // A process that kept the slave open is dead by now; the wait is for output still on its way.
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 500))]);
      pty.master.destroy();
      process.off('SIGWINCH', resize);
      if (!user.stdin.isTTY) return;
      user.stdin.off('data', type);
      user.stdin.setRawMode(false);
      user.stdin.pause();
    },
  };
}

interface OpenPty {
  readonly ptsName: string;
  readonly master: NodeJS.ReadWriteStream & { destroy(): void };
  readonly slave: { destroy(): void };
  resize(cols: number, rows: number): void;
}
