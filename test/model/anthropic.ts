// test/model/anthropic.ts: the Messages API, as Claude Code uses it.
import type { ServerResponse } from 'node:http';
import type { ApiShape, Turn } from './scenario.ts';

interface Body {
  readonly model?: string;
  readonly stream?: boolean;
  readonly tools?: readonly unknown[];
  readonly messages?: readonly { readonly role: string; readonly content: unknown }[];
}

/** Claude Code adds this as the model's answer after an interruption. */
const PADDING = 'No response requested.';

export const anthropic: ApiShape = {
  name: 'anthropic',
  matches: (method, path) => method === 'POST' && path.endsWith('/v1/messages'),
  answered(body) {
    const { messages = [], tools = [] } = body as Body;
    if (tools.length === 0 || JSON.stringify(messages.at(-1)).includes('[SUGGESTION MODE')) return null;
    return messages.filter(({ role, content }) => role === 'assistant' && !JSON.stringify(content).includes(PADDING))
      .length;
  },
  answer(response, turn, body) {
    if (turn.fail !== undefined) return fail(response, turn.fail);
    const { model = 'scripted', stream = false } = body as Body;
    const blocks = contentOf(turn);
    const stopReason = turn.call === undefined ? 'end_turn' : 'tool_use';
    const message = { id: id('msg'), type: 'message', role: 'assistant', model, stop_sequence: null };
    if (!stream) {
      const usage = { input_tokens: 1000, output_tokens: 20 };
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ...message, content: blocks, stop_reason: stopReason, usage }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (type: string, fields: object): void => {
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
    };
    const usage = { input_tokens: 1000, output_tokens: 1 };
    send('message_start', { message: { ...message, content: [], stop_reason: null, usage } });
    for (const [index, block] of blocks.entries()) {
      const { empty, delta } = partsOf(block);
      send('content_block_start', { index, content_block: empty });
      send('content_block_delta', { index, delta });
      send('content_block_stop', { index });
    }
    send('message_delta', { delta: { stop_reason: stopReason, stop_sequence: null }, usage: { output_tokens: 20 } });
    send('message_stop', {});
    response.end();
  },
};

type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: object };

function contentOf({ say, call }: Turn): Block[] {
  return [
    ...(say === undefined ? [] : [{ type: 'text' as const, text: say }]),
    ...(call === undefined ? [] : [{ type: 'tool_use' as const, id: id('toolu'), name: call.tool, input: call.input }]),
  ];
}

function partsOf(block: Block): { empty: object; delta: object } {
  switch (block.type) {
    case 'text':
      return { empty: { type: 'text', text: '' }, delta: { type: 'text_delta', text: block.text } };
    case 'tool_use':
      return {
        empty: { ...block, input: {} },
        delta: { type: 'input_json_delta', partial_json: JSON.stringify(block.input) },
      };
  }
}

const KINDS: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

function fail(response: ServerResponse, { status, message }: NonNullable<Turn['fail']>): void {
  const type = KINDS[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ type: 'error', error: { type, message } }));
}

function id(kind: string): string {
  return `${kind}_${Math.random().toString(36).slice(2, 14)}`;
}
