// agents/line-driver.ts: the common driver of agents that read one prompt from standard input and print one JSON object per line.
// Invariant: nothing throws, every line that the agent's reader does not know is kept as it is, and agent.finished comes
// exactly once.
import type { AgentEvent } from '../protocol/agent-event.ts';
import type { AgentDriver, AgentIo } from './agent.ts';
import { parseObject, type Json } from './json.ts';

export type Finished = Extract<AgentEvent, { type: 'agent.finished' }>;

export interface LineReader {
  /** false: unknown type. */
  object(json: Json): boolean;
  /** It ended without reporting a result. `errors` are its last lines on stderr. */
  ended(code: number, errors: string): Finished;
  /** Lines of stderr without meaning, which also appear on success. */
  readonly chatter: RegExp;
}

const KEPT_ERRORS = 5;

export function driveLines(io: AgentIo, createReader: (emit: (event: AgentEvent) => void) => LineReader): AgentDriver {
  let finished = false;
  const errors: string[] = [];
  const reader = createReader((event) => {
    if (event.type === 'agent.finished') {
      if (finished) return;
      finished = true;
    }
    io.emit(event);
  });
  return {
    start(prompt) {
      io.write(prompt);
      io.end();
    },
    line(text) {
      const json = parseObject(text);
      if ((json === null || !reader.object(json)) && text.trim() !== '')
        io.emit({ type: 'agent.printed', stream: 'stdout', text });
    },
    errorLine(text) {
      if (text.trim() === '' || reader.chatter.test(text)) return;
      errors.push(text.slice(0, 500));
      if (errors.length > KEPT_ERRORS) errors.shift();
      io.emit({ type: 'agent.printed', stream: 'stderr', text });
    },
    send: () => false,
    interrupt: () => false,
    exited(code) {
      if (finished) return;
      finished = true;
      io.emit(reader.ended(code, errors.join('\n')));
    },
  };
}

/** For an agent that ended without a result and with a status other than 0. */
export function brokenOff(code: number, errors: string): Finished {
  const reason = errors === '' ? `it ended with exit code ${code}` : errors;
  const guess = causeOf(null, errors);
  const cause = code === 130 || code === 143 ? 'interrupted' : guess === 'api' ? null : guess;
  return { type: 'agent.finished', ok: false, reason, ...(cause === null ? {} : { cause }) };
}

/** Why a turn failed, from the HTTP status of the model's answer or, if there is none, from the text. */
export function causeOf(status: number | null, text: string): NonNullable<Finished['cause']> {
  const found = status ?? Number(/\b(401|403|429)\b/.exec(text)?.[1] ?? 0);
  if (found === 401 || found === 403) return 'sign-in';
  if (found === 429) return 'rate-limit';
  if (/api[ _-]?key|unauthori[sz]ed|unauthenticated|invalid auth/i.test(text)) return 'sign-in';
  return 'api';
}
