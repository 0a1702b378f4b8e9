// gateway/asks.ts: connections that wait for a person, in record mode.
// Invariant: an ask without an answer is denied at its timeout.
import type { Verdict } from './rules.ts';

export interface Ask {
  readonly host: string;
  readonly port: number;
  readonly sinceMs: number;
  /** The time at which it is denied. */
  readonly untilMs: number;
  readonly count: number;
  /** The program that asked first, if known. */
  readonly program: string | undefined;
}

export interface Asks {
  /** Resolves with the rules' verdict once a rule covers the host, or with null at the timeout. */
  wait(host: string, port: number, program?: string): Promise<Verdict | null>;
  /** The rules have changed. */
  reconsider(): void;
  list(): readonly Ask[];
  close(): void;
}

interface Waiting {
  readonly host: string;
  readonly port: number;
  readonly sinceMs: number;
  readonly program: string | undefined;
  readonly answers: ((verdict: Verdict | null) => void)[];
  readonly timer: NodeJS.Timeout;
}

export function createAsks(input: {
  seconds: number;
  now: () => number;
  decide: (host: string, port: number) => Verdict;
  onAsk: (ask: Ask) => void;
}): Asks {
  const waiting = new Map<string, Waiting>();
  const answerAll = (key: string, verdict: Verdict | null): void => {
    const ask = waiting.get(key);
    if (ask === undefined) return;
    waiting.delete(key);
    clearTimeout(ask.timer);
    for (const answer of ask.answers) answer(verdict);
  };
  return {
    wait(host, port, program) {
      if (input.seconds === 0) return Promise.resolve(null);
      const key = `${host} ${port}`;
      return new Promise((resolve) => {
        const ask = waiting.get(key);
        if (ask !== undefined) return void ask.answers.push(resolve);
        if (waiting.size >= MOST_ASKS) return resolve(null);
        const timer = setTimeout(() => answerAll(key, null), input.seconds * 1000);
        const sinceMs = input.now();
        waiting.set(key, { host, port, sinceMs, program, answers: [resolve], timer });
        input.onAsk({ host, port, sinceMs, untilMs: sinceMs + input.seconds * 1000, count: 1, program });
      });
    },
    reconsider() {
      for (const [key, { host, port }] of waiting) {
        const verdict = input.decide(host, port);
        if (verdict.kind === 'allowed' || !verdict.unknown) answerAll(key, verdict);
      }
    },
    list: () =>
      [...waiting.values()].map(({ host, port, sinceMs, program, answers }) => ({
        host,
        port,
        sinceMs,
        untilMs: sinceMs + input.seconds * 1000,
        count: answers.length,
        program,
      })),
    close() {
      for (const key of waiting.keys()) answerAll(key, null);
    },
  };
}

/** No user answers more asks than this in a minute. Beyond it, a program that asks for endless names is denied. */
const MOST_ASKS = 100;
