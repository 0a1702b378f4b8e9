// server/live/task-index.ts: all tasks in memory, refreshed from changed files: first the directory of tasks, then the times of each
// task's files. Running tasks are checked at every refresh, the others in turns.
// Invariant: the index holds nothing that is not in files, and a refresh costs as much as has changed, not as much as exists.
import { statSync } from 'node:fs';
import type { ApiTask } from '../../protocol/api/api.ts';
import type { EventLine } from '../../protocol/event.ts';
import { tasksDir } from '../../store/layout.ts';
import { entryIds } from '../../queries/entries.ts';
import { compareRows } from '../../queries/list.ts';
import { createTurns } from '../turns.ts';
import { openRow, redraw, renewRow, type LiveRow } from './task-row.ts';

export interface TaskIndexListener {
  task(task: ApiTask): void;
  gone(id: string): void;
  event(id: string, event: EventLine): void;
  /** The task has a new run, so its events start again. */
  replaced(id: string): void;
}

export interface TaskIndex {
  /** Refreshes every task (`all`), or running tasks and a slice of the others (`some`). Refreshes never overlap. */
  look(what: 'all' | 'some'): Promise<void>;
  /** In list order. */
  tasks(): ApiTask[];
  liveRow(id: string): LiveRow | undefined;
  liveRows(): LiveRow[];
  /** Refreshes one task at once, after a request has changed it. */
  touch(id: string): Promise<void>;
}

/** A row is published at most this often. */
const TELL_MS = 500;
/** Every task that is not running is checked once in this many refreshes. */
const SLICES = 10;

export function createTaskIndex(stateDir: string, nowMs: () => number, listener: TaskIndexListener): TaskIndex {
  const liveRows = new Map<string, LiveRow>();
  let directoryTime = '';
  let slice = 0;
  let looking: Promise<void> | null = null;
  const on = {
    event: (liveRow: LiveRow, event: EventLine) => listener.event(liveRow.id, event),
    replaced: (liveRow: LiveRow) => listener.replaced(liveRow.id),
  };

  async function look(all: boolean): Promise<void> {
    await readDirectory();
    slice = (slice + 1) % SLICES;
    let place = 0;
    for (const liveRow of liveRows.values()) {
      const due = all || place++ % SLICES === slice;
      if (due || liveRow.row.live) await lookAt(liveRow, due);
    }
    for (const liveRow of liveRows.values()) tell(liveRow, all);
  }

  async function readDirectory(): Promise<void> {
    const time = timeOf(tasksDir(stateDir));
    if (time === directoryTime) return;
    const ids = new Set(entryIds(stateDir));
    for (const id of liveRows.keys()) if (!ids.has(id)) forget(id);
    let whole = true;
    for (const id of ids) {
      if (liveRows.has(id)) continue;
      const liveRow = await openRow(stateDir, id, on);
      // A task that is being created or removed: the directory's time may not change again when that is finished.
      if (liveRow === null) whole = false;
      else {
        liveRows.set(id, liveRow);
        listener.task(liveRow.shown);
      }
    }
    directoryTime = whole ? time : '';
  }

  async function lookAt(liveRow: LiveRow, thorough: boolean): Promise<void> {
    liveRow.tail.readOn();
    if (!(await renewRow(stateDir, liveRow, thorough))) forget(liveRow.id);
  }

  function tell(liveRow: LiveRow, now: boolean): void {
    if (!liveRow.dirty || (!now && nowMs() - liveRow.toldAtMs < TELL_MS)) return;
    if (!redraw(liveRow)) return;
    liveRow.toldAtMs = nowMs();
    listener.task(liveRow.shown);
  }

  function forget(id: string): void {
    if (liveRows.delete(id)) listener.gone(id);
  }

  const turns = createTurns();
  const inTurn = (act: () => Promise<void>): Promise<void> => {
    const mine = turns('look', act).finally(() => {
      if (looking === mine) looking = null;
    });
    looking = mine;
    return mine;
  };

  return {
    look: (what) => (what === 'some' && looking !== null ? looking : inTurn(() => look(what === 'all'))),
    tasks: () => [...liveRows.values()].toSorted((a, b) => compareRows(a.row, b.row)).map((liveRow) => liveRow.shown),
    liveRow: (id) => liveRows.get(id),
    liveRows: () => [...liveRows.values()],
    touch: (id) =>
      inTurn(async () => {
        await readDirectory();
        const liveRow = liveRows.get(id);
        if (liveRow === undefined) return;
        await lookAt(liveRow, true);
        tell(liveRow, true);
      }),
  };
}

function timeOf(directory: string): string {
  const stat = statSync(directory, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? 'none' : `${stat.ino} ${stat.mtimeNs}`;
}
