// server/live/stream.ts: the same topics as server-sent events, for scripts: curl -N …/api/events?topics=tasks
// Each event ID holds the position in every topic, so a client that reconnects with Last-Event-ID misses nothing.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { HEADERS } from '../sign-in/headers.ts';
import type { Live } from './live.ts';
import type { Subscriber } from './subscribers.ts';
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
