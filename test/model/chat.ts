// test/model/chat.ts: OpenAI's chat completions API, which many others implement.
import type { ServerResponse } from 'node:http';
import type { ApiShape, Turn } from './scenario.ts';

interface ChatRequest {
  readonly model?: string;
  readonly stream?: boolean;
  readonly messages?: readonly { readonly role?: string }[];
  readonly tools?: readonly unknown[];
}

export const chat: ApiShape = {
  name: 'chat',
  matches: (method, path) => method === 'POST' && (path.split('?')[0] ?? '').endsWith('/chat/completions'),
  /** A request without tools asks for a title or a summary. */
  answered(body) {
    const { messages, tools } = body as ChatRequest;
    if (tools === undefined || tools.length === 0) return null;
    return (messages ?? []).filter(({ role }) => role === 'assistant').length;
  },
  answer(response, turn, body) {
    const { model = 'scripted', messages = [], stream } = body as ChatRequest;
    if (turn.fail !== undefined) return fail(response, turn.fail);
    // Each answer of a conversation needs a different call ID.
    const call = turn.call && {
      id: `call_${messages.length}`,
      type: 'function',
      function: { name: turn.call.tool, arguments: JSON.stringify(turn.call.input) },
    };
    const id = `chatcmpl-${messages.length}`;
    const head = { id, created: 1_700_000_000, model };
    const finish = call === undefined ? 'stop' : 'tool_calls';
    if (stream !== true) {
      const message = { role: 'assistant', content: turn.say ?? null, ...(call && { tool_calls: [call] }) };
      const choices = [{ index: 0, message, finish_reason: finish }];
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ...head, object: 'chat.completion', choices, usage: USAGE }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = (delta: object, finishReason: string | null): void =>
      send(response, {
        ...head,
        object: 'chat.completion.chunk',
        choices: [{ index: 0, delta, finish_reason: finishReason }],
      });
    chunk({ role: 'assistant', content: '' }, null);
    if (turn.say !== undefined) chunk({ content: turn.say }, null);
    if (call !== undefined) chunk({ tool_calls: [{ index: 0, ...call }] }, null);
    chunk({}, finish);
    send(response, { ...head, object: 'chat.completion.chunk', choices: [], usage: USAGE });
    response.end('data: [DONE]\n\n');
  },
};

const USAGE = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };

function send(response: ServerResponse, data: object): void {
  response.write(`data: ${JSON.stringify(data)}\n\n`);
}

function fail(response: ServerResponse, { status, message }: NonNullable<Turn['fail']>): void {
  const type = status === 401 ? 'authentication_error' : 'server_error';
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: { message, type, code: status === 401 ? 'invalid_api_key' : null } }));
}
