// server/live/socket.ts: the WebSocket of a tab: the tab names topics, the server sends their messages.
import type { WebSocket } from 'ws';
import { LiveRequest, type LiveMessage } from '../../protocol/api/api.ts';
import type { Live } from './live.ts';
import type { Subscriber } from './subscribers.ts';

const MAX_TOPICS = 2000;
const PING_MS = 30_000;

export function serveLiveSocket(live: Live, socket: WebSocket): void {
  const topics = new Set<string>();
  const subscriber: Subscriber = {
    send: (_message: LiveMessage, text) => socket.send(text),
    waiting: () => socket.bufferedAmount,
  };
  let answered = true;
  let turn: Promise<void> = Promise.resolve();
  const ping = setInterval(() => {
    // A suspended machine closes no connection, so a tab that misses a ping is dropped.
    if (!answered) return socket.terminate();
    answered = false;
    socket.ping();
  }, PING_MS);
  socket.on('pong', () => (answered = true));
  socket.on('error', () => socket.terminate());
  socket.on('close', () => {
    clearInterval(ping);
    live.leave(subscriber);
  });
  socket.on('message', (data: Buffer, binary) => {
    const wish = binary ? null : readWish(data.toString('utf8'));
    if (wish === null || topics.size >= MAX_TOPICS) return socket.close(1008, 'not understood');
    if (wish.do === 'unsubscribe') {
      topics.delete(wish.topic);
      return live.part(subscriber, wish.topic);
    }
    topics.add(wish.topic);
    // A topic that does not exist (any more) answers with a reset.
    const gone: LiveMessage = { topic: wish.topic, type: 'reset', seq: 0, data: null };
    turn = turn
      .then(() => (topics.has(wish.topic) ? live.join(subscriber, wish.topic, wish.after) : undefined))
      .catch(() => {
        topics.delete(wish.topic);
        socket.send(JSON.stringify(gone));
      });
  });
}

function readWish(text: string): LiveRequest | null {
  try {
    return LiveRequest.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
