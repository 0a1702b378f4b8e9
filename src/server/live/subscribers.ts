// server/live/subscribers.ts: who listens to what, live. One publisher for each topic, any number of listeners, whatever they are connected by.
// Invariants: what waits for a slow listener is bounded; it misses nothing that can be told again, and is told (`reset`) where it did.
import type { LiveMessage } from '../../protocol/api/api.ts';

/** One connection. */
export interface Peer {
  send(message: LiveMessage, text: string): void;
  /** Bytes that it has not taken yet. */
  waiting(): number;
}

/** What a topic knows of itself. */
export interface Source {
  /** Of the last message. */
  seq(): number;
  /** Some of what came after; `more`: not all of it. null: that cannot be told any more. */
  since(after: number): { messages: readonly LiveMessage[]; more: boolean } | null;
}

export interface Peers {
  subscribe(peer: Peer, topic: string, source: Source, after: number | null): void;
  unsubscribe(peer: Peer, topic: string): void;
  leave(peer: Peer): void;
  publish(message: LiveMessage): void;
  has(topic: string): boolean;
  /** Topics with a listener. */
  topics(): Iterable<string>;
  /** Whoever was too slow, and has caught up, is told what came meanwhile. */
  catchUp(): void;
  readonly size: number;
}

interface Subscription {
  readonly peer: Peer;
  readonly source: Source;
  /** The last that was sent. */
  cursor: number;
  behind: boolean;
}

const FULL_BYTES = 4 * 2 ** 20;
const ROOM_BYTES = 2 ** 20;

export function createPeers(): Peers {
  const topics = new Map<string, Map<Peer, Subscription>>();
  const all = new Map<Peer, Set<string>>();
  const behind = new Set<{ topic: string; one: Subscription }>();

  /** Until it is full, or there is nothing more. */
  function resume(topic: string, one: Subscription): void {
    one.behind = false;
    while (one.cursor !== one.source.seq()) {
      if (one.peer.waiting() > FULL_BYTES) return fallBehind(topic, one);
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
    one.peer.send(message, text);
  }

  function fallBehind(topic: string, one: Subscription): void {
    one.behind = true;
    behind.add({ topic, one });
  }

  function unsubscribe(peer: Peer, topic: string): void {
    const listeners = topics.get(topic);
    listeners?.delete(peer);
    if (listeners?.size === 0) topics.delete(topic);
    all.get(peer)?.delete(topic);
    for (const late of behind) if (late.one.peer === peer && late.topic === topic) behind.delete(late);
  }

  return {
    subscribe(peer, topic, source, after) {
      unsubscribe(peer, topic);
      const one: Subscription = { peer, source, cursor: after ?? source.seq(), behind: false };
      const listeners = topics.get(topic) ?? new Map<Peer, Subscription>();
      topics.set(topic, listeners.set(peer, one));
      all.set(peer, (all.get(peer) ?? new Set()).add(topic));
      resume(topic, one);
    },
    unsubscribe,
    leave(peer) {
      for (const topic of all.get(peer) ?? []) unsubscribe(peer, topic);
      all.delete(peer);
    },
    publish(message) {
      const listeners = topics.get(message.topic);
      if (listeners === undefined) return;
      const text = JSON.stringify(message);
      for (const one of listeners.values()) {
        if (one.behind) continue;
        if (one.peer.waiting() > FULL_BYTES) fallBehind(message.topic, one);
        else send(one, message, text);
      }
    },
    has: (topic) => topics.has(topic),
    topics: () => topics.keys(),
    catchUp() {
      const waiting = [...behind];
      for (const late of waiting) {
        if (late.one.peer.waiting() > ROOM_BYTES) continue;
        behind.delete(late);
        resume(late.topic, late.one);
      }
    },
    get size() {
      return all.size;
    },
  };
}
