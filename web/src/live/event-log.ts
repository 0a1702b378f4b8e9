// web/src/live/event-log.ts: the events of one task, kept outside React.
// Invariant: the sequence numbers of `events` are consecutive. Events after a gap wait until the gap is read.
import type { ApiEvent, LiveMessage } from '../../../src/protocol/api/api.ts';
import { api } from '../api/client.ts';
import type { Live } from './socket.ts';

const PAGE = 1000;
/** Each earlier page is twice as long, up to this: the whole timeline is rebuilt for every page. */
const MOST_EARLIER = 8000;
const DRAW_EVERY_MS = 100;

export interface EventLogState {
  readonly events: readonly ApiEvent[];
  /** Increases with every change; `earlier` increases with every page added at the front. */
  readonly version: number;
  readonly earlier: number;
  readonly loaded: boolean;
  /** Older events exist on the server. */
  readonly more: boolean;
  readonly error: unknown;
}

export interface EventLog {
  state(): EventLogState;
  subscribe(changed: () => void): () => void;
  readEarlier(): Promise<void>;
  close(): void;
}

export function openEventLog(live: Live, task: string): EventLog {
  const listeners = new Set<() => void>();
  let state: EventLogState = { events: [], version: 0, earlier: 0, loaded: false, more: false, error: null };
  let events: ApiEvent[] = [];
  let first = 0;
  let fresh: ApiEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let end: (() => void) | undefined;
  let closed = false;
  let catchingUp = false;
  let readingEarlier = false;
  let earlierPage = PAGE;

  const last = (): number => events.at(-1)?.seq ?? 0;
  const set = (change: Partial<EventLogState>): void => {
    state = { ...state, events, more: events.length > 0 && (events[0]?.seq ?? 0) > first, ...change };
    for (const listener of listeners) listener();
  };

  function draw(): void {
    timer = undefined;
    const wanted = fresh.filter(({ seq }) => seq > last()).sort((a, b) => a.seq - b.seq);
    fresh = [];
    let next = last() + 1;
    for (const event of wanted) {
      if (events.length > 0 && event.seq !== next) {
        void catchUp();
        break;
      }
      events.push(event);
      next = event.seq + 1;
    }
    events = [...events];
    set({ version: state.version + 1 });
  }

  /** Reads the events after the last known one. */
  async function catchUp(): Promise<void> {
    if (catchingUp) return;
    catchingUp = true;
    try {
      for (;;) {
        const page = await api.events(task, { after: last(), limit: PAGE });
        const added = page.events.filter(({ seq }) => seq > last());
        events = [...events, ...added];
        set({ version: state.version + 1 });
        if (added.length === 0 || last() >= page.last) break;
      }
    } catch (error) {
      set({ error });
    } finally {
      catchingUp = false;
    }
  }

  const onMessage = (message: LiveMessage): void => {
    // The server restarted its numbering, or too many messages were missed.
    if (message.type === 'reset') return void read();
    if (message.type !== 'event') return;
    fresh.push(message.data);
    timer ??= setTimeout(draw, DRAW_EVERY_MS);
  };

  /** Reads the end of the log again. */
  async function read(): Promise<void> {
    const page = await api.events(task, { limit: PAGE });
    if (closed) return;
    events = [...page.events];
    first = page.first;
    fresh = [];
    set({ loaded: true, version: state.version + 1, earlier: state.earlier + 1, error: null });
    if (last() < page.last) await catchUp();
  }

  async function open(): Promise<void> {
    try {
      await read();
      if (!closed) end ??= live.subscribe(`task:${task}`, { after: last, message: onMessage });
    } catch (error) {
      if (!closed) set({ error, loaded: true });
    }
  }
  const unwatch = live.onReturn(() => {
    if (end === undefined) void open();
  });
  void open();

  return {
    state: () => state,
    subscribe(changed) {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    async readEarlier() {
      const oldest = events[0]?.seq ?? 0;
      if (readingEarlier || oldest <= first) return;
      readingEarlier = true;
      try {
        const { events: page } = await api.events(task, { before: oldest, limit: earlierPage });
        // The server ends a page of long events early.
        while (page.length > 0 && (page.at(-1)?.seq ?? 0) < oldest - 1) {
          const rest = await api.events(task, { after: page.at(-1)?.seq ?? 0, limit: earlierPage });
          if (rest.events.length === 0) break;
          page.push(...rest.events);
        }
        events = [...page.filter(({ seq }) => seq < oldest), ...events];
        earlierPage = Math.min(MOST_EARLIER, earlierPage * 2);
        set({ version: state.version + 1, earlier: state.earlier + 1 });
      } catch (error) {
        set({ error });
      } finally {
        readingEarlier = false;
      }
    },
    close() {
      closed = true;
      clearTimeout(timer);
      end?.();
      unwatch();
    },
  };
}
