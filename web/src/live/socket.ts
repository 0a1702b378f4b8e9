// web/src/live/socket.ts: the tab's only WebSocket. After a reconnect, subscribers get the messages they missed, or a reset
// message that tells them to read the current state again.
// Invariant: subscribers resume each topic after its last sequence number, so messages arrive once and in order.
import type { LiveMessage, LiveRequest } from '../../../src/protocol/api/api.ts';
import { socketAddress } from '../api/client.ts';

export type ConnectionState = 'connecting' | 'open' | 'lost';

export interface Connection {
  readonly state: ConnectionState;
  /** null while connected or connecting. */
  readonly retryAtMs: number | null;
  readonly lostAtMs: number | null;
}

export interface TopicListener {
  /** The last sequence number received, read at each connect; null: only new messages. */
  after(): number | null;
  message(message: LiveMessage): void;
}

export interface Live {
  /** Returns a function that ends the subscription. */
  subscribe(topic: string, listener: TopicListener): () => void;
  connection(): Connection;
  onConnection(changed: () => void): () => void;
  /** Called after each reconnect. */
  onReturn(returned: () => void): () => void;
  retryNow(): void;
}

const FIRST_DELAY_MS = 500;
/** Short, because a user who restarts the server watches the page, and an attempt costs little. */
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
    // Two open sockets would deliver every message twice.
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
  // Browsers slow the timers of hidden tabs to once a minute.
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
