// web/src/live/socket.ts: the one WebSocket of this tab. Who wants a topic subscribes to it here; after a break everybody
// gets what was missed, or is told to read the snapshot again.
// Invariant: no message is handed on twice, and none out of order: of each topic the last number is remembered.
import type { LiveMessage, LiveRequest } from '../../../src/protocol/api/api.ts';
import { socketAddress } from '../api/client.ts';

export type ConnectionState = 'connecting' | 'open' | 'lost';

export interface Connection {
  readonly state: ConnectionState;
  /** When it will be tried again; null: it is being tried, or it is there. */
  readonly retryAtMs: number | null;
  readonly lostAtMs: number | null;
}

export interface TopicListener {
  /** Where to go on from, asked at each connect; null: from now. */
  after(): number | null;
  message(message: LiveMessage): void;
}

export interface Live {
  /** Listens to a topic until the returned function is called. */
  subscribe(topic: string, listener: TopicListener): () => void;
  connection(): Connection;
  onConnection(changed: () => void): () => void;
  /** Called whenever a connection is there again after it was lost. */
  onReturn(returned: () => void): () => void;
  retryNow(): void;
}

const FIRST_DELAY_MS = 500;
/** A try costs next to nothing, and whoever has started the server again looks at the page. */
const LONGEST_DELAY_MS = 2000;

export function connectLive(path = '/api/live'): Live {
  const topics = new Map<string, Set<TopicListener>>();
  const watchers = new Set<() => void>();
  const returns = new Set<() => void>();
  let connection: Connection = { state: 'connecting', retryAtMs: null, lostAtMs: null };
  let socket: WebSocket | null = null;
  let delay = FIRST_DELAY_MS;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const become = (next: Connection): void => {
    connection = next;
    for (const watcher of watchers) watcher();
  };
  const tell = (request: LiveRequest): void => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(request));
  };
  const ask = (topic: string, listeners: ReadonlySet<TopicListener>): void => {
    const known = [...listeners].map((listener) => listener.after());
    const after = known.includes(null) ? null : Math.min(...known.map(Number));
    tell({ do: 'subscribe', topic, after });
  };

  function open(): void {
    clearTimeout(timer);
    // One that is being tried is enough: two that both succeed would tell everything twice.
    if (socket !== null) return;
    const opened = new WebSocket(socketAddress(path));
    socket = opened;
    opened.addEventListener('open', () => {
      const wasLost = connection.lostAtMs !== null;
      delay = FIRST_DELAY_MS;
      for (const [topic, listeners] of topics) ask(topic, listeners);
      become({ state: 'open', retryAtMs: null, lostAtMs: null });
      if (wasLost) for (const returned of returns) returned();
    });
    opened.addEventListener('message', ({ data }) => {
      const message = JSON.parse(String(data)) as LiveMessage;
      for (const listener of topics.get(message.topic) ?? []) listener.message(message);
    });
    opened.addEventListener('close', () => {
      if (socket === opened) lose();
    });
  }

  function lose(): void {
    socket = null;
    const wait = delay * (0.75 + Math.random() / 2);
    delay = Math.min(delay * 2, LONGEST_DELAY_MS);
    become({ state: 'lost', retryAtMs: Date.now() + wait, lostAtMs: connection.lostAtMs ?? Date.now() });
    timer = setTimeout(open, wait);
  }

  const retryNow = (): void => {
    if (connection.state === 'lost') open();
  };
  open();
  // Browsers let the clock of a tab that nobody sees tick once a minute.
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && retryNow());
  return {
    subscribe(topic, listener) {
      const listeners = topics.get(topic) ?? new Set();
      topics.set(topic, listeners);
      listeners.add(listener);
      ask(topic, new Set([listener]));
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        topics.delete(topic);
        tell({ do: 'unsubscribe', topic });
      };
    },
    connection: () => connection,
    onConnection(changed) {
      watchers.add(changed);
      return () => watchers.delete(changed);
    },
    onReturn(returned) {
      returns.add(returned);
      return () => returns.delete(returned);
    },
    retryNow,
  };
}
