// gateway/meter/model-meter.ts: meters requests to models: how many turns, what they used, and which ones failed. It looks at what the
// model's endpoint answers, so programs inside cannot change the count.
// Invariant: no request that may begin a turn is sent once the account refuses turns, and none at all once it refuses requests.
import type { ModelAccount } from '../../protocol/model-usage.ts';
import { type Field, listOf } from '../intercept/head.ts';
import { firstOf } from '../intercept/request-rewrite.ts';
import { readAnswerUsage, type AnswerUsage } from './answer-usage.ts';
import { createRequestReader } from './request-facts.ts';
import { retryAfterOf } from './retry-after.ts';

export interface ModelMeter {
  /** null: not a request to a model. A sentence: it is refused. */
  open(request: MeteredRequest): ModelRequest | string | null;
}

export interface MeteredRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly Field[];
  readonly upgrade: boolean;
  /** The endpoint of a secret: models and nothing else are behind it. */
  readonly endpoint: boolean;
}

export interface ModelRequest {
  /** No turn is left: `judge` decides, once it has seen LOOKED_AT bytes of the body or all of it, before any of it is sent. */
  readonly held: boolean;
  /** The next bytes of the body, without framing. */
  sent(data: Buffer): void;
  /** The whole body has been given to `sent`. */
  complete(): void;
  /** For a held request. A sentence: it would begin a turn and is refused. */
  judge(): string | null;
  head(status: number, headers: readonly Field[]): void;
  received(data: Buffer): void;
  /** `whole`: the answer has passed completely. Later calls do nothing. */
  close(whole: boolean): void;
}

/** A request beside the conversation, such as one for a title, is shorter. */
export const LOOKED_AT = 256 * 1024;

/** Answers of a model, whatever its provider puts before them. */
const GENERATES = /\/(?:v\d+\/messages|responses|chat\/completions|completions)\/?$|:(?:stream)?generatecontent$/i;
/** Counts tokens of a request with tools, and does not answer it. */
const COUNTS = /\/(?:count_tokens|input_tokens)$|:counttokens$/i;
/** Answered later or elsewhere, where it cannot be counted. */
const UNSEEN = /\/batches(?:\/|$)|:batchgeneratecontent$|\/realtime(?:\/|$)/i;

export function createModelMeter(account: ModelAccount): ModelMeter {
  /** Answers that were counted: one can be fetched again and again, and is paid once. */
  const counted = new Set<string>();
  const note = (id: string | null): boolean => {
    if (id === null || counted.has(id)) return false;
    if (counted.size < MOST_NOTED) counted.add(id);
    return true;
  };
  return {
    open(written) {
      const request = { ...written, path: usualPath(written.path) };
      const generates = request.method === 'POST' && GENERATES.test(request.path);
      if (!request.endpoint && !generates) return null;
      if (request.method !== 'POST' && !request.upgrade) return openPlain(account, note);
      const unseen = request.upgrade || UNSEEN.test(request.path);
      if (unseen && account.strict) return 'a budget is set, and what this request uses could not be counted';
      if (unseen || COUNTS.test(request.path)) return null;
      return account.refusal(generates) ?? openRequest(account, request, generates, note);
    },
  };
}

/** Where no rule depends on the path, it is sent as it was written; servers read these spellings alike. */
function usualPath(written: string): string {
  const decoded = written.replaceAll(/%([2-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  const plain = decoded
    .replaceAll('\\', '/')
    .replaceAll(/[;?#][^/]*/g, '')
    .split('/');
  const parts: string[] = [];
  for (const part of plain) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}

const MOST_NOTED = 10_000;

/** Fetches an answer that was made before, or something else. */
function openPlain(account: ModelAccount, note: (id: string | null) => boolean): ModelRequest {
  let usage: AnswerUsage | null = null;
  return {
    held: false,
    sent: () => undefined,
    complete: () => undefined,
    judge: () => null,
    head(status, headers) {
      if (status < 300) usage = readAnswerUsage(firstOf(headers, 'content-type') ?? '', null);
    },
    received: (data) => usage?.push(data),
    close(whole) {
      const used = usage?.end(whole) ?? null;
      if (used !== null && note(usage?.id ?? null)) account.answered(used);
      usage = null;
    },
  };
}

function openRequest(
  account: ModelAccount,
  request: MeteredRequest,
  generates: boolean,
  note: (id: string | null) => boolean,
): ModelRequest {
  // What cannot be read may hold anything.
  const readable = listOf(request.headers, 'content-encoding').every((coding) => coding === 'identity');
  const reader = createRequestReader(readable);
  // Taken before the tools are seen: two requests at the same time must not both be the last.
  let taken = generates && account.takeTurn();
  const held = generates && !taken;
  if (generates) account.asking(true);
  let whole = false;
  let usage: AnswerUsage | null = null;
  let failure: { readonly status: number; readonly headers: readonly Field[]; text: string } | null = null;
  let answered = false;
  let closed = false;
  const giveBack = (): void => {
    if (taken) account.giveTurnBack();
    taken = false;
  };
  return {
    held,
    sent: (data) => reader.push(data),
    complete() {
      whole = true;
      if (!reader.hasTools) giveBack();
    },
    judge() {
      if (whole && !reader.hasTools) return null;
      // Meanwhile, a request without tools may have given a turn back.
      taken = account.takeTurn();
      return taken ? null : account.refuseTurn();
    },
    head(status, headers) {
      answered = true;
      if (status < 300) {
        const estimate = generates ? { model: null, requestBytes: () => reader.bytes } : null;
        usage = readAnswerUsage(firstOf(headers, 'content-type') ?? '', estimate);
        return;
      }
      giveBack();
      if (generates && (status === 429 || status >= 500)) failure = { status, headers, text: '' };
    },
    received(data) {
      usage?.push(data);
      if (failure !== null && failure.text.length < MOST_ERROR) failure.text += data.toString('latin1', 0, MOST_ERROR);
    },
    close(passed) {
      if (closed) return;
      closed = true;
      if (generates) account.asking(false);
      if (failure !== null)
        return account.failed(failure.status, retryAfterOf(failure.headers, failure.text, Date.now()));
      if (!answered) {
        giveBack();
        return whole && generates ? account.failed(null, null) : undefined;
      }
      const used = usage?.end(passed) ?? null;
      if (used === null) return undefined;
      note(usage?.id ?? null);
      if (!taken && !generates && reader.hasTools) account.takeTurn();
      return account.answered({ ...used, model: used.model ?? reader.model ?? modelInPath(request.path) });
    },
  };
}

const MOST_ERROR = 16 * 1024;

/** Of Gemini: /v1beta/models/<model>:generateContent */
function modelInPath(path: string): string | null {
  return /\/models\/([\w.-]{1,100}):/.exec(path)?.[1] ?? null;
}
