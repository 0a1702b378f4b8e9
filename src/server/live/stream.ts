// server/live/stream.ts: the same topics as server-sent events, for scripts: curl -N …/api/events?topics=tasks
// An id names the place in every topic, so that whoever comes back with the last one (Last-Event-ID) misses nothing.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { HEADERS } from '../sign-in/headers.ts';
import type { Live } from './live.ts';
import type { Peer } from './subscribers.ts';
import { Refusal } from '../routes/refusal.ts';

const MAX_TOPICS = 100;
const STILL_THERE_MS = 15_000;

export async function serveLiveStream(
  live: Live,
  query: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const topics = [...new Set((query.get('topics') ?? 'tasks').split(',').filter((topic) => topic !== ''))];
  if (topics.length === 0 || topics.length > MAX_TOPICS)
    throw new Refusal(400, 'request.invalid', `Name 1 to ${MAX_TOPICS} topics.`);
  const last = request.headers['last-event-id'];
  const places = readPlaces(typeof last === 'string' ? last : query.get('after'), topics.length);
  const started = { yes: false };
  const peer: Peer = {
    send(message, text) {
      places[topics.indexOf(message.topic)] = message.seq;
      start();
      response.write(`id: ${places.map((place) => place ?? '-').join('.')}\nevent: ${message.type}\ndata: ${text}\n\n`);
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
    live.leave(peer);
  });
  const timer = setInterval(() => void (started.yes && response.write(': still there\n\n')), STILL_THERE_MS);
  try {
    for (const [i, topic] of topics.entries()) await live.join(peer, topic, places[i] ?? null);
  } catch (error) {
    clearInterval(timer);
    live.leave(peer);
    throw error;
  }
  start();
  response.write(': here\n\n');
}

/** "12.-.7": one for each topic, in their order. */
function readPlaces(text: string | null, count: number): (number | null)[] {
  const given = text === null || text === '' ? [] : text.split('.');
  if (given.length > count || given.some((one) => !/^(-|\d{1,15})$/.test(one)))
    throw new Refusal(400, 'request.invalid', '"after" is one number for each topic, with dots between.');
  return Array.from({ length: count }, (_, i) => {
    const one = given[i] ?? '-';
    return one === '-' ? null : Number(one);
  });
}
