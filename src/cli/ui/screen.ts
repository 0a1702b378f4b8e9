// cli/ui/screen.ts: the terminal as a full screen: takes it over, draws changed rows, and gives it back.
// Invariant: however the process ends (short of SIGKILL), the terminal is as before: main screen, cursor, line editing.
import { writeSync } from 'node:fs';
import { draw, type Line } from './cells.ts';
import { createKeyReader, type Key } from './keys.ts';
import type { Context } from '../verb.ts';

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  /** Draws rows that differ from what is there. `cursor`: where to show it; null hides it. */
  show(lines: readonly Line[], cursor: { x: number; y: number } | null): void;
  /** Draws everything anew the next time. */
  forget(): void;
  /** Gives the terminal to something else, for as long as it runs. */
  lend<T>(use: () => Promise<T>): Promise<T>;
  /** Stops the process as Ctrl-Z does in a shell. */
  suspend(): void;
  close(): void;
}

// Alternate screen, no wrapping, bracketed paste; the cursor is hidden.
const ENTER = '\u001b[?1049h\u001b[?7l\u001b[?2004h\u001b[?25l\u001b[2J';
const LEAVE = '\u001b[0m\u001b[?25h\u001b[?2004l\u001b[?7h\u001b[?1049l';
// Terminals that know it draw the whole update at once; the others ignore it.
const BEGIN = '\u001b[?2026h';
const END = '\u001b[?2026l';

const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

export function openScreen(ctx: Context, on: { key(key: Key): void; redraw(): void }): Screen {
  const { stdin, stdout } = ctx;
  let drawn: string[] = [];
  let entered = false;
  let draining = false;
  const reader = createKeyReader((key) => on.key(key));
  const onData = (chunk: Buffer): void => reader.push(chunk);

  function enter(): void {
    if (entered) return;
    entered = true;
    drawn = [];
    stdin.setRawMode(true);
    stdin.on('data', onData).resume();
    stdout.write(ENTER);
  }

  /** Written at once: the process may be about to end. */
  function leave(): void {
    if (!entered) return;
    entered = false;
    stdin.off('data', onData).pause();
    try {
      stdin.setRawMode(false);
      writeSync(1, LEAVE);
    } catch {
      // The terminal is gone.
    }
  }

  const signals = Object.entries(SIGNALS).map(([name, number]) => {
    const end = (): void => {
      leave();
      process.exit(128 + number);
    };
    process.on(name, end);
    return { name, end };
  });
  const resized = (): void => {
    drawn = [];
    on.redraw();
  };
  const woken = (): void => {
    if (!entered) return;
    stdin.setRawMode(true);
    stdout.write(ENTER);
    resized();
  };
  stdout.on('resize', resized);
  process.on('SIGCONT', woken);
  process.on('exit', leave);
  // Called before Node prints the error, so that it is not lost with the alternate screen.
  process.on('uncaughtExceptionMonitor', leave);

  enter();
  return {
    get columns() {
      return stdout.columns || 80;
    },
    get rows() {
      return stdout.rows || 24;
    },
    show(lines, cursor) {
      // A slow line takes the newest screen when it is ready for one.
      if (!entered || draining) return;
      const { columns, rows } = this;
      const next = Array.from({ length: rows }, (_, y) => draw(lines[y] ?? [], columns, ctx.colour));
      const changed = next.flatMap((row, y) => (row === drawn[y] ? [] : [`\u001b[${y + 1};1H\u001b[2K${row}`]));
      const place = cursor === null ? '\u001b[?25l' : `\u001b[${cursor.y + 1};${cursor.x + 1}H\u001b[?25h`;
      drawn = next;
      draining = !stdout.write(`${BEGIN}${changed.join('')}${place}${END}`);
      if (draining)
        stdout.once('drain', () => {
          draining = false;
          on.redraw();
        });
    },
    forget() {
      drawn = [];
    },
    async lend(use) {
      leave();
      for (const { name, end } of signals) if (name === 'SIGINT') process.off(name, end);
      // Ctrl-C belongs to the program that has the terminal now.
      const ignore = (): void => undefined;
      process.on('SIGINT', ignore);
      try {
        return await use();
      } finally {
        process.off('SIGINT', ignore);
        for (const { name, end } of signals) if (name === 'SIGINT') process.on(name, end);
        enter();
      }
    },
    suspend() {
      leave();
      // The whole group, as the terminal does. Without job control the kernel ignores it, and the screen comes back at once.
      process.kill(0, 'SIGTSTP');
      enter();
      on.redraw();
    },
    close() {
      leave();
      reader.close();
      for (const { name, end } of signals) process.off(name, end);
      stdout.off('resize', resized);
      process.off('SIGCONT', woken);
      process.off('exit', leave);
      process.off('uncaughtExceptionMonitor', leave);
    },
  };
}
