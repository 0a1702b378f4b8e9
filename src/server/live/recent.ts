// server/live/recent.ts: numbers and keeps the last messages of a topic that has no log file.
import type { LiveMessage } from '../../protocol/api/api.ts';
import type { Source } from './subscribers.ts';

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
