// server/live/stream.ts: live topics over the WebSocket of a tab, and as server-sent events for scripts: curl -N …/api/events?topics=tasks
// Each event ID holds the position in every topic, so a client that reconnects with Last-Event-ID misses nothing.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { WebSocket } from 'ws';
import { LiveRequest, type LiveMessage } from '../../protocol/api/api.ts';
import { Refusal } from '../routes/refusal.ts';
import { HEADERS } from '../sign-in/headers.ts';
import type { Live } from './live.ts';
import type { Subscriber } from './subscribers.ts';

const MAX_STREAM_TOPICS = 100;
const STILL_THERE_MS = 15_000;

export async function serveLiveStream(
  live: Live,
  query: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const topics = [...new Set((query.get('topics') ?? 'tasks').split(',').filter((topic) => topic !== ''))];
  if (topics.length === 0 || topics.length > MAX_STREAM_TOPICS)
    throw new Refusal(400, 'request.invalid', `Name 1 to ${MAX_STREAM_TOPICS} topics.`);
  const last = request.headers['last-event-id'];
  const knownProjects = readPlaces(typeof last === 'string' ? last : query.get('after'), topics.length);
  const started = { yes: false };
  const subscriber: Subscriber = {
    send(message, text) {
      knownProjects[topics.indexOf(message.topic)] = message.seq;
      start();
      response.write(
        `id: ${knownProjects.map((place) => place ?? '-').join('.')}\nevent: ${message.type}\ndata: ${text}\n\n`,
      );
    },
    waiting: () => response.writableLength,
  };
  const start = (): void => {
    if (started.yes) return;
    started.yes = true;
    response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  };
  response.on('close', () => {
    clearInterval(timer);
    live.leave(subscriber);
  });
  const timer = setInterval(() => void (started.yes && response.write(': still there\n\n')), STILL_THERE_MS);
  try {
    for (const [i, topic] of topics.entries()) await live.join(subscriber, topic, knownProjects[i] ?? null);
  } catch (error) {
    clearInterval(timer);
    live.leave(subscriber);
    throw error;
  }
  start();
  response.write(': here\n\n');
}

/** Parses "12.-.7": one position for each topic, in the order of the topics. */
function readPlaces(text: string | null, count: number): (number | null)[] {
  const given = text === null || text === '' ? [] : text.split('.');
  if (given.length > count || given.some((one) => !/^(-|\d{1,15})$/.test(one)))
    throw new Refusal(400, 'request.invalid', '"after" is one number for each topic, with dots between.');
  return Array.from({ length: count }, (_, i) => {
    const one = given[i] ?? '-';
    return one === '-' ? null : Number(one);
  });
}

const MAX_SOCKET_TOPICS = 2000;
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
    if (wish === null || topics.size >= MAX_SOCKET_TOPICS) return socket.close(1008, 'not understood');
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
