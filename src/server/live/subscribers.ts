// server/live/subscribers.ts: which connection is subscribed to which topic. A topic has one publisher and any number of subscribers.
// The last messages of a topic that has no log file are kept here.
// Invariants: the data buffered for a slow subscriber is bounded. It gets missed messages later, or `reset` if they are gone.
import type { LiveMessage } from '../../protocol/api/api.ts';

/** One connection. */
export interface Subscriber {
  send(message: LiveMessage, text: string): void;
  /** Bytes written to the connection and not yet sent. */
  waiting(): number;
}

/** The messages of one topic. */
export interface Source {
  /** The number of the last message. */
  seq(): number;
  /** Messages after a number; `more` if there are further ones; null if they are no longer available. */
  since(after: number): { messages: readonly LiveMessage[]; more: boolean } | null;
}

export interface Subscribers {
  subscribe(subscriber: Subscriber, topic: string, source: Source, after: number | null): void;
  unsubscribe(subscriber: Subscriber, topic: string): void;
  leave(subscriber: Subscriber): void;
  publish(message: LiveMessage): void;
  has(topic: string): boolean;
  /** Topics that have subscribers. */
  topics(): Iterable<string>;
  /** Sends missed messages to subscribers that were too slow and have drained their buffer. */
  catchUp(): void;
  readonly size: number;
}

interface Subscription {
  readonly subscriber: Subscriber;
  readonly source: Source;
  /** The number of the last message sent to this subscriber. */
  cursor: number;
  behind: boolean;
}

const FULL_BYTES = 4 * 2 ** 20;
const ROOM_BYTES = 2 ** 20;

export function createSubscribers(): Subscribers {
  const topics = new Map<string, Map<Subscriber, Subscription>>();
  const all = new Map<Subscriber, Set<string>>();
  const behind = new Set<{ topic: string; one: Subscription }>();

  /** Sends missed messages until the buffer is full or none are left. */
  function resume(topic: string, one: Subscription): void {
    one.behind = false;
    while (one.cursor !== one.source.seq()) {
      if (one.subscriber.waiting() > FULL_BYTES) return fallBehind(topic, one);
      const missed = one.source.since(one.cursor);
      if (missed === null) return reset(topic, one);
      for (const message of missed.messages) send(one, message, JSON.stringify(message));
      if (!missed.more || missed.messages.length === 0) return;
    }
  }

  function reset(topic: string, one: Subscription): void {
    const message: LiveMessage = { topic, type: 'reset', seq: one.source.seq(), data: null };
    send(one, message, JSON.stringify(message));
  }

  function send(one: Subscription, message: LiveMessage, text: string): void {
    one.cursor = message.seq;
    one.subscriber.send(message, text);
  }

  function fallBehind(topic: string, one: Subscription): void {
    one.behind = true;
    behind.add({ topic, one });
  }

  function unsubscribe(subscriber: Subscriber, topic: string): void {
    const listeners = topics.get(topic);
    listeners?.delete(subscriber);
    if (listeners?.size === 0) topics.delete(topic);
    all.get(subscriber)?.delete(topic);
    for (const late of behind) if (late.one.subscriber === subscriber && late.topic === topic) behind.delete(late);
  }

  return {
    subscribe(subscriber, topic, source, after) {
      unsubscribe(subscriber, topic);
      const one: Subscription = { subscriber, source, cursor: after ?? source.seq(), behind: false };
      const listeners = topics.get(topic) ?? new Map<Subscriber, Subscription>();
      topics.set(topic, listeners.set(subscriber, one));
      all.set(subscriber, (all.get(subscriber) ?? new Set()).add(topic));
      resume(topic, one);
    },
    unsubscribe,
    leave(subscriber) {
      for (const topic of all.get(subscriber) ?? []) unsubscribe(subscriber, topic);
      all.delete(subscriber);
    },
    publish(message) {
      const listeners = topics.get(message.topic);
      if (listeners === undefined) return;
      const text = JSON.stringify(message);
      for (const one of listeners.values()) {
        if (one.behind) continue;
        if (one.subscriber.waiting() > FULL_BYTES) fallBehind(message.topic, one);
        else send(one, message, text);
      }
    },
    has: (topic) => topics.has(topic),
    topics: () => topics.keys(),
    catchUp() {
      const waiting = [...behind];
      for (const late of waiting) {
        if (late.one.subscriber.waiting() > ROOM_BYTES) continue;
        behind.delete(late);
        resume(late.topic, late.one);
      }
    },
    get size() {
      return all.size;
    },
  };
}

type Numbered<M> = M extends LiveMessage ? Omit<M, 'seq'> : never;

export interface Recent extends Source {
  /** Returns the message with its number. */
  add(message: Numbered<LiveMessage>): LiveMessage;
}

/** `start` must be above every number that an earlier server used. */
export function createRecent(start: number, most = 2000): Recent {
  const kept: LiveMessage[] = [];
  let seq = start;
  return {
    add(message) {
      const numbered = { ...message, seq: ++seq };
      kept.push(numbered);
      // Trimming in batches avoids moving the whole array at every message.
      if (kept.length >= 2 * most) kept.splice(0, kept.length - most);
      return numbered;
    },
    seq: () => seq,
    since(after) {
      const first = (kept[0]?.seq ?? seq + 1) - 1;
      if (after < first || after > seq) return null;
      return { messages: kept.slice(after - first), more: false };
    },
  };
}
