// server/live/recent.ts: the last messages of a topic that has no log of its own, numbered here.
import type { LiveMessage } from '../../protocol/api/api.ts';
import type { Source } from './subscribers.ts';

type Numbered<M> = M extends LiveMessage ? Omit<M, 'seq'> : never;

export interface Recent extends Source {
  /** With its number. */
  add(message: Numbered<LiveMessage>): LiveMessage;
}

/** `start`: above every number that an earlier server can have used. */
export function createRecent(start: number, most = 2000): Recent {
  const kept: LiveMessage[] = [];
  let seq = start;
  return {
    add(message) {
      const numbered = { ...message, seq: ++seq };
      kept.push(numbered);
      // In one go, for moving the whole list at each message would cost more than keeping some longer.
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
