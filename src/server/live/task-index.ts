// server/live/task-index.ts: all tasks as they are, kept in memory and put right by looking at what has changed: the directory of tasks, then the
// times of a task's files. What runs is looked at every time, the rest in turns.
// Invariant: nothing here is known that is not in files, and a look costs what has changed, not what there is.
import { statSync } from 'node:fs';
import type { ApiTask } from '../../protocol/api/api.ts';
import type { EventLine } from '../../store/events.ts';
import { tasksDir } from '../../store/layout.ts';
import { entryIds } from '../../queries/entries.ts';
import { compareRows } from '../../queries/list.ts';
import { createTurns } from '../turns.ts';
import { openCard, redraw, renewCard, type Card } from './task-row.ts';

export interface BoardListener {
  task(task: ApiTask): void;
  gone(id: string): void;
  event(id: string, event: EventLine): void;
  /** Its events begin anew: another run. */
  replaced(id: string): void;
}

export interface Board {
  /** A look at everything (`all`), or at what runs and a part of the rest. Nobody looks twice at once. */
  look(what: 'all' | 'some'): Promise<void>;
  /** In the order of the list. */
  tasks(): ApiTask[];
  card(id: string): Card | undefined;
  cards(): Card[];
  /** What somebody has just done with it is seen at once. */
  touch(id: string): Promise<void>;
}

/** A row is told at most this often. */
const TELL_MS = 500;
/** In how many looks every task that does not run is looked at once. */
const SLICES = 10;

export function createBoard(stateDir: string, nowMs: () => number, listener: BoardListener): Board {
  const cards = new Map<string, Card>();
  let directoryTime = '';
  let slice = 0;
  let looking: Promise<void> | null = null;
  const on = {
    event: (card: Card, event: EventLine) => listener.event(card.id, event),
    replaced: (card: Card) => listener.replaced(card.id),
  };

  async function look(all: boolean): Promise<void> {
    await readDirectory();
    slice = (slice + 1) % SLICES;
    let place = 0;
    for (const card of cards.values()) {
      const due = all || place++ % SLICES === slice;
      if (due || card.row.live) await lookAt(card, due);
    }
    for (const card of cards.values()) tell(card, all);
  }

  async function readDirectory(): Promise<void> {
    const time = timeOf(tasksDir(stateDir));
    if (time === directoryTime) return;
    const ids = new Set(entryIds(stateDir));
    for (const id of cards.keys()) if (!ids.has(id)) forget(id);
    let whole = true;
    for (const id of ids) {
      if (cards.has(id)) continue;
      const card = await openCard(stateDir, id, on);
      // Half-made or half-removed: the directory need not change again for it to be complete.
      if (card === null) whole = false;
      else {
        cards.set(id, card);
        listener.task(card.shown);
      }
    }
    directoryTime = whole ? time : '';
  }

  async function lookAt(card: Card, thorough: boolean): Promise<void> {
    card.tail.readOn();
    if (!(await renewCard(stateDir, card, thorough))) forget(card.id);
  }

  function tell(card: Card, now: boolean): void {
    if (!card.dirty || (!now && nowMs() - card.toldAtMs < TELL_MS)) return;
    if (!redraw(card)) return;
    card.toldAtMs = nowMs();
    listener.task(card.shown);
  }

  function forget(id: string): void {
    if (cards.delete(id)) listener.gone(id);
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
    tasks: () => [...cards.values()].toSorted((a, b) => compareRows(a.row, b.row)).map((card) => card.shown),
    card: (id) => cards.get(id),
    cards: () => [...cards.values()],
    touch: (id) =>
      inTurn(async () => {
        await readDirectory();
        const card = cards.get(id);
        if (card === undefined) return;
        await lookAt(card, true);
        tell(card, true);
      }),
  };
}

function timeOf(directory: string): string {
  const stat = statSync(directory, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? 'none' : `${stat.ino} ${stat.mtimeNs}`;
}
