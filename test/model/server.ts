// test/model/server.ts: a scripted model on loopback for the real programs of agents. It implements the API of each of them,
// requires the right key, and records its requests.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { anthropic } from './anthropic.ts';
import { chat } from './chat.ts';
import { gemini } from './gemini.ts';
import { responses } from './responses.ts';
import type { ApiShape, Scenario, Turn } from './scenario.ts';

const SHAPES: readonly ApiShape[] = [
  anthropic, // Claude Code
  responses, // Codex CLI
  chat, // Qwen Code, opencode
  gemini, // Gemini CLI
];

export interface ModelRequest {
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  readonly shape: string | null;
  /** The index of the turn that answered; null: refused, or beside the conversation. */
  readonly turn: number | null;
  readonly keyOk: boolean;
}

export interface Model extends AsyncDisposable {
  readonly port: number;
  /** "http://127.0.0.1:40000". */
  readonly url: string;
  readonly requests: ModelRequest[];
  setScenario(scenario: Scenario): void;
  close(): Promise<void>;
}

export interface ModelOptions {
  readonly scenario: Scenario;
  /** The key that must be in `x-api-key`, `authorization: Bearer`, `x-goog-api-key` or `?key=`. */
  readonly key: string;
  /** Called before each answer of the conversation; can delay it. */
  readonly before?: (request: ModelRequest) => Promise<void> | void;
  /** Serves TLS, for tests that replace the real host. */
  readonly tls?: { readonly key: string; readonly cert: string };
}

export async function startModel(options: ModelOptions): Promise<Model> {
  const requests: ModelRequest[] = [];
  let script = createScript(options.scenario);

  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    void answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://model.test');
    const method = request.method ?? '';
    const body = parse(await readBody(request));
    const shape = SHAPES.find((one) => one.matches(method, url.pathname));
    const keyOk = keyOf(request.headers, url) === options.key;
    const seen = { method, path: url.pathname, headers: request.headers, body, shape: shape?.name ?? null, keyOk };
    if (shape === undefined) {
      requests.push({ ...seen, turn: null });
      response.writeHead(method === 'HEAD' ? 200 : 404, { 'content-type': 'application/json' }).end('{}');
      return;
    }
    const answered = shape.answered(body);
    if (!keyOk || answered === null) {
      requests.push({ ...seen, turn: null });
      shape.answer(response, keyOk ? ASIDE : WRONG_KEY, body, url.pathname);
      return;
    }
    const { turn, index } = script(answered);
    const noted = { ...seen, turn: index };
    requests.push(noted);
    await options.before?.(noted);
    for (const [name, value] of Object.entries(turn.headers ?? {})) response.setHeader(name, value);
    if (turn.fail?.retryAfter !== undefined) response.setHeader('retry-after', String(turn.fail.retryAfter));
    shape.answer(response, turn, body, url.pathname);
  };

  const server = options.tls === undefined ? createServer(onRequest) : createTlsServer(options.tls, onRequest);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = (): Promise<void> => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  };
  return {
    port,
    url: `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    requests,
    setScenario: (scenario) => {
      script = createScript(scenario);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

const WRONG_KEY: Turn = { fail: { status: 401, message: 'the key is wrong' } };
/** Valid both as JSON, for titles, and as text, for suggestions. */
const ASIDE: Turn = { say: '{"title":"A scripted task"}' };
const NOTHING_MORE: Turn = { say: 'There is nothing more to do.' };

/** Counts failures, which leave no trace in the conversation. A failure as the last turn repeats. */
function createScript(scenario: Scenario): (answered: number) => { turn: Turn; index: number } {
  let failed = 0;
  return (answered) => {
    const last = scenario.length - 1;
    const wanted = answered + failed;
    const index = wanted > last && scenario[last]?.fail !== undefined ? last : wanted;
    const turn = scenario[index] ?? NOTHING_MORE;
    if (turn.fail !== undefined && index < last) failed += 1;
    return { turn, index };
  };
}

function keyOf(headers: IncomingHttpHeaders, url: URL): string | undefined {
  const named = headers['x-api-key'] ?? headers['x-goog-api-key'] ?? url.searchParams.get('key') ?? undefined;
  return typeof named === 'string' ? named : headers.authorization?.replace(/^Bearer /, '');
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
