// nested-docker/ask-engine.ts: a request to an engine inside, as its clients make them.
// Invariant: an agent commands that engine, so its answers are a stranger's: bounded, and read for nothing but their form.
import { request, type IncomingMessage } from 'node:http';
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import { ENGINE_PORT } from '../sandbox/nested/engine-args.ts';
import type { InnerEngine } from '../sandbox/nested/nested-engine.ts';

const ANSWER_MS = 60_000;
const MOST_CHARACTERS = 4_000_000;

export interface Wish {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  /** In place of `body`: an archive, as it comes. */
  readonly archive?: NodeJS.ReadableStream | Buffer;
}

/** What was answered, as JSON or as text. Rejects what is no success. */
export async function askInner(engine: InnerEngine, wish: Wish, signal?: AbortSignal): Promise<unknown> {
  // Also where it goes on and on: files that are brought there have no end that is known.
  const enough = isStream(wish.archive) ? [] : [AbortSignal.timeout(ANSWER_MS)];
  const until = [...enough, ...(signal === undefined ? [] : [signal])];
  const answer = await openAnswer(engine, wish, until.length === 0 ? undefined : AbortSignal.any(until));
  let text = '';
  answer.setEncoding('utf8');
  for await (const chunk of answer) {
    text += String(chunk);
    if (text.length > MOST_CHARACTERS) throw new AgsError('backend.failed', 'it says too much');
  }
  const said = readJson(text);
  if ((answer.statusCode ?? 500) < 300) return said;
  const message = (said as { message?: unknown } | null)?.message;
  throw new AgsError('backend.failed', visible((typeof message === 'string' ? message : text).slice(0, 500)));
}

/** The answer while it comes, for what has no end. */
export async function openAnswer(engine: InnerEngine, wish: Wish, signal?: AbortSignal): Promise<IncomingMessage> {
  const socket = await engine.connect(ENGINE_PORT);
  const archive = wish.archive;
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void =>
      reject(error instanceof AgsError ? error : new AgsError('backend.failed', error.message));
    const asked = request({
      createConnection: () => socket,
      method: wish.method ?? 'GET',
      path: wish.path,
      headers: {
        host: 'docker',
        connection: 'close',
        ...(archive === undefined ? {} : { 'content-type': 'application/x-tar' }),
        ...(wish.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(signal === undefined ? {} : { signal }),
    });
    asked.on('error', fail).on('response', (answer) => {
      asked.setTimeout(0);
      resolve(answer.on('error', () => undefined));
    });
    if (archive === undefined || Buffer.isBuffer(archive)) {
      asked.setTimeout(ANSWER_MS, () => asked.destroy(new AgsError('backend.failed', 'it does not answer')));
      asked.end(archive ?? (wish.body === undefined ? undefined : JSON.stringify(wish.body)));
    } else archive.on('error', (error: Error) => asked.destroy(error)).pipe(asked);
  });
}

function isStream(archive: Wish['archive']): boolean {
  return archive !== undefined && !Buffer.isBuffer(archive);
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
