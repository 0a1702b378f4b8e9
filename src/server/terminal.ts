// server/terminal.ts: a task's terminal in a tab. Binary messages are bytes; text messages are commands: {"resize":{"cols":80,"rows":24}}.
// All tabs of a task share one shell, which outlives its last tab for a while so that a page can be reloaded.
// A question of the program to its terminal reaches one tab only, and no later one.
// Invariants: the buffer for a slow tab and the screen history are bounded. A program inside can draw on the screen and do nothing else
// to the viewer.
import type { WebSocket } from 'ws';
import { createScreenFilter } from '../lib/screen-filter.ts';
import { withoutQueries } from '../lib/terminal-queries.ts';
import { joinTerminal, type JoinedTerminal } from '../exec/join-terminal.ts';
import type { StoredTask } from '../store/tasks.ts';

export interface Terminals {
  serve(stored: StoredTask, socket: WebSocket): Promise<void>;
  close(): void;
}

interface Open {
  /** The last is the one that was opened or typed in last. */
  readonly tabs: Set<WebSocket>;
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
      tabs: new Set(),
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
            for (const tab of terminal.tabs) tab.close(1000, how);
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
    const shown = withoutQueries(data);
    terminal.recent.push(shown);
    terminal.kept += shown.length;
    while (terminal.kept - (terminal.recent[0]?.length ?? 0) > RECENT_BYTES)
      terminal.kept -= terminal.recent.shift()?.length ?? 0;
    const last = [...terminal.tabs].at(-1);
    for (const tab of terminal.tabs)
      if (tab.bufferedAmount > MAX_WAITING) tab.terminate();
      else tab.send(tab === last ? data : shown, () => pace(terminal));
    pace(terminal);
  }

  /** Reads the shell at the speed of the fastest tab. */
  function pace({ joined, tabs }: Open): void {
    const taken = tabs.size === 0 || [...tabs].some((tab) => tab.bufferedAmount < ROOM_BYTES);
    void joined.then(
      (one) => one.take(taken),
      () => undefined,
    );
  }

  function leave(id: string, terminal: Open, socket: WebSocket): void {
    terminal.tabs.delete(socket);
    pace(terminal);
    if (terminal.tabs.size > 0 || open.get(id) !== terminal) return;
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
      // Messages that arrive before the terminal is open wait for it, in order.
      socket.on('message', (data, binary) => {
        if (binary && terminal.tabs.delete(socket)) terminal.tabs.add(socket);
        void terminal.joined.then(
          (joined) => (binary ? joined.write(data as Buffer) : resize(joined, String(data as Buffer))),
          () => undefined,
        );
      });
      try {
        await terminal.joined;
      } catch (error) {
        return socket.close(1011, shortened(error instanceof Error ? error.message : String(error)));
      }
      for (const piece of terminal.recent) socket.send(piece);
      terminal.tabs.add(socket);
      if (socket.readyState !== socket.OPEN) leave(id, terminal, socket);
    },
    close() {
      for (const terminal of open.values()) end(terminal);
    },
  };
}

/** The WebSocket protocol allows 123 bytes for a close reason. */
function shortened(text: string): string {
  return Buffer.from(text)
    .subarray(0, 120)
    .toString('utf8')
    .replace(/\uFFFD+$/, '');
}

function resize(joined: JoinedTerminal, text: string): void {
  try {
    const { resize } = JSON.parse(text) as { resize?: { cols?: unknown; rows?: unknown } };
    const sane = (value: unknown): number =>
      typeof value === 'number' && value >= 1 && value <= 1000 ? Math.floor(value) : 0;
    const [cols, rows] = [sane(resize?.cols), sane(resize?.rows)];
    if (cols > 0 && rows > 0) joined.resize(cols, rows);
  } catch {
    // Unknown text messages are ignored.
  }
}
