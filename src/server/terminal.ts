// server/terminal.ts: a terminal of a task in a tab. Binary messages are bytes, text ones are wishes: {"resize":{"cols":80,"rows":24}}.
// A shell lives on for a while when its last tab is closed, so that a page can be loaded again; every tab of a task has the same one.
// Invariants: what is kept for a tab that does not read, and of what was on the screen, is bounded; a program inside draws on the
// screen and does nothing else to whoever looks at it.
import type { WebSocket } from 'ws';
import { createScreenFilter } from '../lib/screen-filter.ts';
import { joinTerminal, type JoinedTerminal } from '../exec/join-terminal.ts';
import type { StoredTask } from '../store/tasks.ts';

export interface Terminals {
  serve(stored: StoredTask, socket: WebSocket): Promise<void>;
  close(): void;
}

interface Open {
  readonly guests: Set<WebSocket>;
  readonly joined: Promise<JoinedTerminal>;
  recent: Buffer[];
  kept: number;
  leaving: NodeJS.Timeout | null;
}

const RECENT_BYTES = 256 * 1024;
const MAX_WAITING = 4 * 2 ** 20;
const ROOM_BYTES = 2 ** 20;
const LINGER_MS = 10 * 60_000;

export function createTerminals(lingerMs = LINGER_MS): Terminals {
  const open = new Map<string, Open>();

  function start(stored: StoredTask): Open {
    const { id } = stored.task;
    const drawn = createScreenFilter();
    const terminal: Open = {
      guests: new Set(),
      recent: [],
      kept: 0,
      leaving: null,
      joined: joinTerminal(
        stored,
        stored.task.goal?.interactive === true ? 'attach' : 'shell',
        { columns: 80, rows: 24 },
        {
          data: (data) => show(terminal, drawn(data)),
          end(exitCode) {
            open.delete(id);
            const how = exitCode === null ? 'it was cut off' : `it ended with ${exitCode}`;
            for (const guest of terminal.guests) guest.close(1000, how);
          },
        },
      ),
    };
    terminal.joined.catch(() => {
      if (terminal.leaving !== null) clearTimeout(terminal.leaving);
      if (open.get(id) === terminal) open.delete(id);
    });
    open.set(id, terminal);
    return terminal;
  }

  function show(terminal: Open, data: Buffer): void {
    terminal.recent.push(data);
    terminal.kept += data.length;
    while (terminal.kept - (terminal.recent[0]?.length ?? 0) > RECENT_BYTES)
      terminal.kept -= terminal.recent.shift()?.length ?? 0;
    for (const guest of terminal.guests)
      if (guest.bufferedAmount > MAX_WAITING) guest.terminate();
      else guest.send(data, () => pace(terminal));
    pace(terminal);
  }

  /** As fast as the fastest of them reads. */
  function pace({ joined, guests }: Open): void {
    const taken = guests.size === 0 || [...guests].some((guest) => guest.bufferedAmount < ROOM_BYTES);
    void joined.then(
      (one) => one.take(taken),
      () => undefined,
    );
  }

  function leave(id: string, terminal: Open, socket: WebSocket): void {
    terminal.guests.delete(socket);
    pace(terminal);
    if (terminal.guests.size > 0 || open.get(id) !== terminal) return;
    terminal.leaving = setTimeout(() => {
      open.delete(id);
      end(terminal);
    }, lingerMs);
    terminal.leaving.unref();
  }

  function end({ joined }: Open): void {
    void joined.then(
      (one) => one.close(),
      () => undefined,
    );
  }

  return {
    async serve(stored, socket) {
      const { id } = stored.task;
      const terminal = open.get(id) ?? start(stored);
      if (terminal.leaving !== null) clearTimeout(terminal.leaving);
      terminal.leaving = null;
      socket.on('error', () => socket.terminate());
      socket.on('close', () => leave(id, terminal, socket));
      // What comes before the terminal is there waits for it, in order.
      socket.on('message', (data, binary) => {
        void terminal.joined.then(
          (joined) => (binary ? joined.write(data as Buffer) : wish(joined, String(data as Buffer))),
          () => undefined,
        );
      });
      try {
        await terminal.joined;
      } catch (error) {
        return socket.close(1011, shortened(error instanceof Error ? error.message : String(error)));
      }
      for (const piece of terminal.recent) socket.send(piece);
      terminal.guests.add(socket);
      if (socket.readyState !== socket.OPEN) leave(id, terminal, socket);
    },
    close() {
      for (const terminal of open.values()) end(terminal);
    },
  };
}

/** A reason may have 123 bytes. */
function shortened(text: string): string {
  return Buffer.from(text)
    .subarray(0, 120)
    .toString('utf8')
    .replace(/\uFFFD+$/, '');
}

function wish(joined: JoinedTerminal, text: string): void {
  try {
    const { resize } = JSON.parse(text) as { resize?: { cols?: unknown; rows?: unknown } };
    const sane = (value: unknown): number =>
      typeof value === 'number' && value >= 1 && value <= 1000 ? Math.floor(value) : 0;
    const [cols, rows] = [sane(resize?.cols), sane(resize?.rows)];
    if (cols > 0 && rows > 0) joined.resize(cols, rows);
  } catch {
    // Not a wish of ours.
  }
}
