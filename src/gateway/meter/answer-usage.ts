// gateway/meter/answer-usage.ts: reads what an answer of a model used, while its bytes pass: Anthropic Messages, OpenAI Responses and
// Chat Completions, Gemini generateContent; as a whole or as a stream of events.
// Invariant: bounded in memory and time, whatever the answer holds. Nothing here throws, delays the answer, or is used for
// anything but counting.
import type { ModelUsage } from '../../protocol/model-usage.ts';

export interface AnswerUsage {
  push(data: Buffer): void;
  /** `whole`: the answer ended regularly. null: it tells nothing of use, and none is expected of it. */
  end(whole: boolean): ModelUsage | null;
  /** The answer's own ID, as far as it has one. */
  readonly id: string | null;
}

/** A longer event or document, or one in more pieces, is not parsed; its size is used. */
const MOST_HELD = 4 * 2 ** 20;
const MOST_PIECES = 2 ** 16;

interface Found {
  id: string | null;
  model: string | null;
  input: number;
  cached: number;
  cacheWrite: number;
  cacheWriteLong: number;
  output: number;
  /** The answer told its input, and its final output. */
  told: boolean;
  toldOutput: boolean;
}

/** `estimate`: what to assume of an answer that does not tell, by the size of the request; null: assume nothing. */
export function readAnswerUsage(
  contentType: string,
  estimate: { model: string | null; requestBytes: () => number } | null,
): AnswerUsage {
  const found: Found = {
    id: null,
    model: null,
    input: 0,
    cached: 0,
    cacheWrite: 0,
    cacheWriteLong: 0,
    output: 0,
    told: false,
    toldOutput: false,
  };
  const stream = /^text\/event-stream\b/i.test(contentType);
  const known = stream || /^application\/(?:[\w.+-]*\+)?json\b/i.test(contentType);
  let bytes = 0;
  let events = 0;
  let held: Buffer[] = [];
  let heldBytes = 0;
  let tooLong = false;

  function hold(data: Buffer): void {
    if (tooLong || data.length === 0) return;
    heldBytes += data.length;
    tooLong = heldBytes > MOST_HELD || held.length >= MOST_PIECES;
    if (tooLong) held = [];
    else held.push(data);
  }
  function release(): Buffer {
    const whole = held.length === 1 ? (held[0] ?? EMPTY) : Buffer.concat(held);
    held = [];
    heldBytes = 0;
    tooLong = false;
    return whole;
  }
  /** A line of `data`. Lines may be empty and millions, so those without an event cost nothing. */
  function line(data: Buffer, from: number, to: number): void {
    if (data[from] !== DATA[0] || data.compare(DATA, 0, DATA.length, from, Math.min(to, from + DATA.length)) !== 0)
      return;
    events += 1;
    const text = data.subarray(from + DATA.length, to);
    // Most events hold no usage; those of Chat Completions say that it is null.
    if (text.includes('"usage')) note(found, parse(text.toString('utf8')));
  }
  return {
    push(data) {
      bytes += data.length;
      if (!known) return;
      if (!stream) return hold(data);
      let from = 0;
      // A search for each line would cost more than all of its bytes if lines are short.
      for (let at = 0; at < data.length; at += 1) {
        if (data[at] !== LF) continue;
        if (heldBytes === 0) line(data, from, at);
        else {
          hold(data.subarray(from, at));
          const whole = release();
          line(whole, 0, whole.length);
        }
        from = at + 1;
      }
      hold(data.subarray(from));
    },
    get id() {
      return found.id;
    },
    end(whole) {
      if (known && heldBytes > 0) {
        const rest = release();
        if (stream) line(rest, 0, rest.length);
        else note(found, parse(rest.toString('utf8')));
      }
      if (!found.told && estimate === null) return null;
      const { input, cached, cacheWrite, cacheWriteLong } = found;
      const model = found.model ?? estimate?.model ?? null;
      const output = whole && found.toldOutput ? found.output : Math.max(found.output, outputOf(bytes, events));
      const told = { model, cached, cacheWrite, cacheWriteLong, output };
      if (found.told) return { ...told, input, estimated: !(whole && found.toldOutput) };
      return { ...told, input: Math.ceil((estimate?.requestBytes() ?? 0) / BYTES_PER_TOKEN), estimated: true };
    },
  };
}

const EMPTY = Buffer.alloc(0);
const DATA = Buffer.from('data:');
const LF = 10;
const BYTES_PER_TOKEN = 4;
/** Of an event of a stream, around its text. */
const EVENT_BYTES = 300;

/** A stream mostly has an event for each token. */
function outputOf(bytes: number, events: number): number {
  return Math.max(events, Math.ceil(Math.max(0, bytes - events * EVENT_BYTES) / BYTES_PER_TOKEN));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A stream tells totals so far, so the highest figure counts. */
function note(found: Found, json: unknown): void {
  // Lists in lists are no answer, and could be too deep for this stack.
  for (const one of Array.isArray(json) ? json.slice(-MOST_PARTS) : [json]) noteAnswer(found, one);
}

function noteAnswer(found: Found, json: unknown): void {
  // The first event of Anthropic's stream tells the input, and of the output only what came with it.
  const final = field(json, 'type') !== 'message_start';
  for (const holder of [json, field(json, 'message'), field(json, 'response')]) {
    found.id ??= textOf(holder, 'id') ?? textOf(holder, 'responseId');
    found.model ??= textOf(holder, 'model') ?? textOf(holder, 'modelVersion');
    for (const usage of [field(holder, 'usage'), field(holder, 'usageMetadata')]) noteUsage(found, usage, final);
  }
}

const MOST_PARTS = 10_000;

function noteUsage(found: Found, usage: unknown, final: boolean): void {
  if (typeof usage !== 'object' || usage === null) return;
  const count = (...names: readonly string[]): number =>
    names.reduce((sum, name) => sum + (tokens(field(usage, name)) ?? 0), 0);
  // OpenAI and Gemini count cached tokens as input, Anthropic beside it.
  const within =
    (tokens(field(field(usage, 'input_tokens_details'), 'cached_tokens')) ?? 0) +
    (tokens(field(field(usage, 'prompt_tokens_details'), 'cached_tokens')) ?? 0) +
    count('cachedContentTokenCount');
  const beside = count('cache_read_input_tokens');
  const input = count('input_tokens', 'prompt_tokens', 'promptTokenCount', 'toolUsePromptTokenCount') - within;
  const long = tokens(field(field(usage, 'cache_creation'), 'ephemeral_1h_input_tokens')) ?? 0;
  const output = count('output_tokens', 'completion_tokens', 'candidatesTokenCount', 'thoughtsTokenCount');
  found.input = Math.max(found.input, input, 0);
  found.cached = Math.max(found.cached, within + beside);
  found.cacheWriteLong = Math.max(found.cacheWriteLong, long);
  found.cacheWrite = Math.max(found.cacheWrite, count('cache_creation_input_tokens') - long, 0);
  found.output = Math.max(found.output, output);
  found.told ||= input > 0 || within + beside > 0;
  found.toldOutput ||= final && OUTPUT_FIGURES.some((name) => tokens(field(usage, name)) !== null);
}

const OUTPUT_FIGURES = [
  'output_tokens',
  'completion_tokens',
  'candidatesTokenCount',
  'total_tokens',
  'totalTokenCount',
];

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

function textOf(value: unknown, name: string): string | null {
  const found = field(value, name);
  return typeof found === 'string' && found !== '' && found.length <= MOST_NAME ? found : null;
}

const MOST_NAME = 200;

/** A figure beyond any answer is none. */
function tokens(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= MOST_TOKENS ? value : null;
}

const MOST_TOKENS = 1e9;
