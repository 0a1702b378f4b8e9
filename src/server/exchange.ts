// server/exchange.ts: reads one API request and writes its response.
// Invariant: a body is read up to a size limit, and no code uses it before its schema has accepted it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { HEADERS } from './sign-in/headers.ts';
import { errorAnswer, Refusal } from './routes/refusal.ts';
import { requireJson } from './sign-in/guard.ts';
import type { PageFile } from './page.ts';
import type { Api, Found } from './routes/route.ts';

const MAX_BODY = 4 * 2 ** 20;

export async function answerCall(
  api: Api,
  { route, ids }: Found,
  query: URLSearchParams,
  request: IncomingMessage,
): Promise<unknown> {
  const body = route.method === 'GET' ? undefined : await readBody(request);
  const parsed = route.body?.safeParse(body ?? {});
  if (parsed?.success === false)
    throw new Refusal(400, 'request.invalid', 'The request is invalid.', {
      hint: parsed.error.issues
        .slice(0, 5)
        .map((issue) => `${issue.path.join('.')}: ${issue.message}`)
        .join('; '),
    });
  return route.run(api, { ids, query, body: parsed?.data as never });
}

/** undefined: the request has no body. */
async function readBody(request: IncomingMessage): Promise<unknown> {
  const length = request.headers['content-length'];
  const chunked = request.headers['transfer-encoding'] !== undefined;
  if (!chunked && (length === undefined || length === '0')) return undefined;
  requireJson({ method: request.method ?? '', headers: request.headers });
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MAX_BODY) throw new Refusal(413, 'request.size', 'The request is too large.');
    pieces.push(piece);
  }
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'));
  } catch {
    throw new Refusal(400, 'request.invalid', 'The body is not JSON.');
  }
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, {
    ...HEADERS,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': body.length,
    'Cache-Control': 'no-store',
  });
  response.end(body);
}

export function sendError(response: ServerResponse, error: unknown): void {
  const { status, body } = errorAnswer(error);
  if (response.headersSent) return void response.destroy();
  // The unread rest of a body must not be parsed as the next request.
  response.setHeader('Connection', 'close');
  sendJson(response, status, body);
}

export function sendFile(response: ServerResponse, { body, headers }: PageFile, status = 200): void {
  response.writeHead(status, { ...HEADERS, ...headers, 'Content-Length': body.length });
  response.end(body);
}
