// test/model/server.ts: a model that says what a scenario tells it to, on loopback, for the real programs of agents. It speaks
// the API of each of them, wants the right key, and remembers what it was asked.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { anthropic } from './anthropic.ts';
import { chat } from './chat.ts';
import { gemini } from './gemini.ts';
import { responses } from './responses.ts';
import type { ApiShape, Scenario, Turn } from './scenario.ts';

/** One line for each. */
const SHAPES: readonly ApiShape[] = [
  anthropic, // Claude Code
  responses, // Codex CLI
  chat, // Qwen Code, opencode
  gemini, // Gemini CLI
];

export interface ModelRequest {
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  readonly shape: string | null;
  /** Which turn of the scenario it was answered with; null: it was refused, or stood beside the conversation. */
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
  /** What must come in `x-api-key`, `authorization: Bearer`, `x-goog-api-key` or `?key=`. */
  readonly key: string;
  /** Asked before each answer of the conversation: an answer can be held back. */
  readonly before?: (request: ModelRequest) => Promise<void> | void;
  /** Speaks TLS, for tests that stand in for the real host. */
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
/** Titles are wanted as JSON, suggestions as text: this is both. */
const ASIDE: Turn = { say: '{"title":"A scripted task"}' };
const NOTHING_MORE: Turn = { say: 'There is nothing more to do.' };

/** A failure leaves no trace in a conversation, so those given are counted here; one that is the last turn stays. */
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
