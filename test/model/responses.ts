// test/model/responses.ts: the Responses API, as Codex CLI uses it.
import type { ServerResponse } from 'node:http';
import type { ApiShape, Turn } from './scenario.ts';

interface Body {
  readonly model?: string;
  readonly stream?: boolean;
  readonly input?: readonly Item[];
  readonly tools?: readonly unknown[];
  readonly text?: { readonly format?: unknown };
}

interface Item {
  readonly type?: string;
  readonly role?: string;
}

export const responses: ApiShape = {
  name: 'responses',
  matches: (method, path) => method === 'POST' && path.endsWith('/responses'),
  answered(body) {
    const { input = [], tools = [], text } = body as Body;
    // A request for a title, in a separate conversation, asks for JSON.
    if (text?.format !== undefined) return null;
    if (tools.length === 0 && !input.some(({ type }) => type === 'additional_tools')) return null;
    // The text and the call of one answer are consecutive items.
    const ours = input.map(
      ({ type, role }) => role === 'assistant' || type === 'function_call' || type === 'custom_tool_call',
    );
    return ours.filter((own, at) => own && ours[at + 1] !== true).length;
  },
  answer(response, turn, body) {
    if (turn.fail !== undefined) return fail(response, turn.fail);
    const { model = 'scripted', stream = false } = body as Body;
    const output = itemsOf(turn);
    const usage = {
      input_tokens: 1000,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 20,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 1020,
    };
    const whole = { id: id('resp'), object: 'response', model, status: 'completed', output, usage };
    if (!stream) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    let sequence = 0;
    const send = (type: string, fields: object): void => {
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...fields })}\n\n`);
    };
    send('response.created', { response: { ...whole, status: 'in_progress', output: [], usage: null } });
    for (const [index, item] of output.entries()) {
      send('response.output_item.added', { output_index: index, item: { ...item, status: 'in_progress' } });
      if (item.type === 'function_call')
        for (const kind of ['delta', 'done'])
          send(`response.function_call_arguments.${kind}`, {
            item_id: item.id,
            output_index: index,
            [kind === 'delta' ? kind : 'arguments']: item.arguments,
          });
      if (item.type === 'message')
        send('response.output_text.delta', {
          item_id: item.id,
          output_index: index,
          content_index: 0,
          delta: item.content[0]?.text ?? '',
        });
      send('response.output_item.done', { output_index: index, item: { ...item, status: 'completed' } });
    }
    send('response.completed', { response: whole });
    response.end();
  },
};

type Output =
  | {
      readonly type: 'message';
      readonly id: string;
      readonly role: 'assistant';
      readonly content: readonly { readonly type: 'output_text'; readonly text: string; readonly annotations: [] }[];
    }
  | { readonly type: 'function_call'; readonly id: string; readonly call_id: string; readonly arguments: string }
  | { readonly type: 'custom_tool_call'; readonly id: string; readonly call_id: string; readonly input: string };

/** A tool that takes raw text, such as apply_patch, is called with `{ input: text }`. */
function itemsOf({ say, call }: Turn): Output[] {
  const items: Output[] = [];
  if (say !== undefined) {
    const content = [{ type: 'output_text' as const, text: say, annotations: [] as [] }];
    items.push({ type: 'message', id: id('msg'), role: 'assistant', content });
  }
  if (call !== undefined) {
    const common = { id: id('fc'), call_id: id('call'), name: call.tool };
    const [text, ...others] = Object.entries(call.input);
    const raw = text?.[0] === 'input' && others.length === 0;
    items.push(
      raw
        ? { ...common, type: 'custom_tool_call', input: String(text[1]) }
        : { ...common, type: 'function_call', arguments: JSON.stringify(call.input) },
    );
  }
  return items;
}

function fail(response: ServerResponse, { status, message }: NonNullable<Turn['fail']>): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: { message, type: 'invalid_request_error', code: null, param: null } }));
}

function id(kind: string): string {
  return `${kind}_${Math.random().toString(36).slice(2, 14)}`;
}
