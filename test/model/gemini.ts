// test/model/gemini.ts: the Gemini API, with and without streaming, and its variant for Google accounts (v1internal), which wraps each
// body and starts with a call that identifies the user.
import type { ServerResponse } from 'node:http';
import type { ApiShape, Turn } from './scenario.ts';

interface GeminiRequest {
  readonly contents?: readonly { readonly role?: string }[];
  readonly tools?: readonly unknown[];
  readonly generationConfig?: Readonly<Record<string, unknown>>;
}

const PATH = /\/v1(?:(?:beta|alpha)?\/models\/([^/:]+)|internal):(\w+)$/;

/** A v1internal request names its model and contains a usual request. */
function unwrapped(body: unknown): GeminiRequest {
  return (body as { request?: GeminiRequest }).request ?? (body as GeminiRequest);
}

export const gemini: ApiShape = {
  name: 'gemini',
  matches: (method, path) => method === 'POST' && PATH.test(path.split('?')[0] ?? ''),
  /** A request with a schema, or without tools, is not part of the conversation. */
  answered(body) {
    const { contents, tools, generationConfig = {} } = unwrapped(body);
    if (tools === undefined || tools.length === 0 || wantsJson(generationConfig)) return null;
    return (contents ?? []).filter(({ role }) => role === 'model').length;
  },
  answer(response, turn, body, path) {
    const [, model, method = ''] = PATH.exec(path.split('?')[0] ?? '') ?? [];
    if (turn.fail !== undefined) return fail(response, turn.fail);
    if (!method.endsWith('enerateContent') && method !== 'countTokens') return json(response, SIGNED_IN);
    if (method === 'countTokens') return json(response, { totalTokens: USAGE.promptTokenCount });
    const { contents = [], generationConfig = {} } = unwrapped(body);
    const text = wantsJson(generationConfig) ? ROUTE : turn.say;
    const parts = [
      ...(text === undefined ? [] : [{ text }]),
      ...(turn.call === undefined
        ? []
        : [{ functionCall: { id: `call_${contents.length}`, name: turn.call.tool, args: turn.call.input } }]),
    ];
    const said = {
      candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
      usageMetadata: USAGE,
      modelVersion: model ?? (body as { model?: string }).model,
      responseId: `response-${contents.length}`,
    };
    const answer = model === undefined ? { response: said } : said;
    if (method === 'generateContent') return json(response, answer);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify(answer)}\r\n\r\n`);
  },
};

/** Before each turn Gemini CLI asks how complex the request is, to choose a model. */
const ROUTE = '{"complexity_reasoning":"It is simple.","complexity_score":10}';

const USAGE = { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 };

const SIGNED_IN = { currentTier: { id: 'standard-tier', name: 'Standard' }, cloudaicompanionProject: 'scripted' };

function wantsJson(config: Readonly<Record<string, unknown>>): boolean {
  return config['responseMimeType'] === 'application/json';
}

function json(response: ServerResponse, data: object): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(data));
}

function fail(response: ServerResponse, { status, message }: NonNullable<Turn['fail']>): void {
  const code = status === 401 ? 'UNAUTHENTICATED' : status === 429 ? 'RESOURCE_EXHAUSTED' : 'INTERNAL';
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: { code: status, message, status: code } }));
}
