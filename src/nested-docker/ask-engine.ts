// nested-docker/ask-engine.ts: sends a request to nested Docker, over its HTTP API.
// Invariant: an agent controls that engine, so its answers are untrusted: their size is bounded and only their form is read.
import { request, type IncomingMessage } from 'node:http';
import { AgsError, flat } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import { ENGINE_PORT } from '../sandbox/nested/engine-args.ts';
import type { NestedEngine } from '../sandbox/nested/nested-engine.ts';

const ANSWER_MS = 60_000;
const MOST_CHARACTERS = 4_000_000;

export interface EngineRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  /** Replaces `body`: a tar archive, streamed. */
  readonly archive?: NodeJS.ReadableStream | Buffer;
}

/** The answer, as JSON or as text. Rejects any status but success. */
export async function askNestedEngine(
  engine: NestedEngine,
  wanted: EngineRequest,
  signal?: AbortSignal,
): Promise<unknown> {
  // A timeout also bounds an endless answer. Uploads of files get none, because their duration is unknown.
  const enough = isStream(wanted.archive) ? [] : [AbortSignal.timeout(ANSWER_MS)];
  const until = [...enough, ...(signal === undefined ? [] : [signal])];
  const answer = await openAnswer(engine, wanted, until.length === 0 ? undefined : AbortSignal.any(until));
  let text = '';
  answer.setEncoding('utf8');
  for await (const chunk of answer) {
    text += String(chunk);
    if (text.length > MOST_CHARACTERS) throw new AgsError('backend.failed', 'its answer is too long');
  }
  const said = readJson(text);
  if ((answer.statusCode ?? 500) < 300) return said;
  const message = (said as { message?: unknown } | null)?.message;
  throw new AgsError('backend.failed', visible(flat(typeof message === 'string' ? message : text).slice(0, 500)));
}

/** The answer as a stream, for requests without an end such as logs. */
export async function openAnswer(
  engine: NestedEngine,
  wanted: EngineRequest,
  signal?: AbortSignal,
): Promise<IncomingMessage> {
  const socket = await engine.connect(ENGINE_PORT);
  const archive = wanted.archive;
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void =>
      reject(error instanceof AgsError ? error : new AgsError('backend.failed', error.message));
    const asked = request({
      createConnection: () => socket,
      method: wanted.method ?? 'GET',
      path: wanted.path,
      headers: {
        host: 'docker',
        connection: 'close',
        ...(archive === undefined ? {} : { 'content-type': 'application/x-tar' }),
        ...(wanted.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(signal === undefined ? {} : { signal }),
    });
    asked.on('error', fail).on('response', (answer) => {
      asked.setTimeout(0);
      resolve(answer.on('error', () => undefined));
    });
    if (archive === undefined || Buffer.isBuffer(archive)) {
      asked.setTimeout(ANSWER_MS, () => asked.destroy(new AgsError('backend.failed', 'it does not answer')));
      asked.end(archive ?? (wanted.body === undefined ? undefined : JSON.stringify(wanted.body)));
    } else archive.on('error', (error: Error) => asked.destroy(error)).pipe(asked);
  });
}

function isStream(archive: EngineRequest['archive']): boolean {
  return archive !== undefined && !Buffer.isBuffer(archive);
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
