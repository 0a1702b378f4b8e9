// agents/gemini/reader.ts: turns the output of Gemini CLI into events.
import type { AgentEvent } from '../../protocol/agent-event.ts';
import { actionOf } from './tools.ts';
import { REFUSED } from '../hook-command.ts';
import { cut, numberOf, parseObject, textOf, within, type Json } from '../json.ts';
import { causeOf, type Finished, type LineReader } from '../line-driver.ts';

/** Lines of stderr that appear on success too, or that repeat the result of a call. */
const CHATTER =
  /^(YOLO mode is enabled|Warning: (256-color|True color)|Loaded cached credentials|Data collection is disabled|Error executing tool |Refused by a hook\.|(\[WARNING\] )?Hook(\(s\)| execution) )/;

export function createGeminiReader(emit: (event: AgentEvent) => void): LineReader {
  let said = '';
  let lastWord = '';
  let failure: string | null = null;
  // A message arrives in pieces.
  const speak = (): void => {
    if (said !== '') emit({ type: 'agent.said', text: said });
    if (said !== '') lastWord = said;
    said = '';
  };
  return {
    chatter: CHATTER,
    object(json) {
      const type = textOf(json, 'type');
      if (type === 'message') {
        const text = textOf(json, 'content');
        if (text === null) return false;
        if (textOf(json, 'role') === 'user') return true;
        if (json['delta'] !== true) speak();
        said += text;
        if (json['delta'] !== true || said.length > MOST_HELD) speak();
        return true;
      }
      speak();
      switch (type ?? '') {
        case 'init': {
          const model = textOf(json, 'model');
          emit({ type: 'agent.started', session: textOf(json, 'session_id'), ...(model === null ? {} : { model }) });
          return true;
        }
        case 'tool_use': {
          const tool = textOf(json, 'tool_name');
          const id = textOf(json, 'tool_id');
          if (tool === null || id === null) return false;
          emit({ type: 'tool.started', id, tool, action: actionOf(tool, json['parameters']) });
          return true;
        }
        case 'tool_result': {
          const id = textOf(json, 'tool_id');
          if (id === null) return false;
          emit({ type: 'tool.finished', id, ...resultOf(json) });
          return true;
        }
        case 'error': {
          const text = textOf(json, 'message');
          if (text === null) return false;
          emit({ type: 'agent.waited', why: text });
          return true;
        }
        case 'result': {
          const used = json['stats'];
          const [inputTokens, outputTokens] = [numberOf(used, 'input_tokens'), numberOf(used, 'output_tokens')];
          if (inputTokens !== null && outputTokens !== null) emit({ type: 'agent.used', inputTokens, outputTokens });
          if (textOf(json, 'status') === 'success') {
            emit({ type: 'agent.finished', ok: true, ...(lastWord === '' ? {} : { text: lastWord }) });
            return true;
          }
          // The exit code tells the kind of error.
          const error = within(json, 'error');
          failure = plainMessage(textOf(error, 'message') ?? 'it gave no reason');
          return true;
        }
        default:
          return false;
      }
    },
    ended: (code, errors) => {
      speak();
      return endOf(code, failure, errors);
    },
  };
}

const MOST_HELD = 16 * 1024;

function resultOf(json: Json): {
  outcome: 'done' | 'failed' | 'refused';
  exitCode?: number;
  output?: string;
} {
  const error = within(json, 'error');
  const output = textOf(json, 'output') ?? textOf(error, 'message');
  const kept = output === null ? {} : { output: cut(output) };
  if (textOf(json, 'status') === 'success') return { ...successOf(output ?? ''), ...kept };
  const refused = textOf(error, 'type') === 'policy_violation' || output?.includes(REFUSED) === true;
  return { outcome: refused ? 'refused' : 'failed', ...kept };
}

/** A command that failed silently, and one that Gemini CLI refused to run, are successes of the tool. */
function successOf(output: string): { outcome: 'done' | 'failed' | 'refused'; exitCode?: number } {
  const code = /^Command exited with code: (\d{1,3})$/.exec(output)?.[1];
  if (code !== undefined) return { outcome: 'failed', exitCode: Number(code) };
  return { outcome: output.startsWith('Blocked: command substitution detected') ? 'refused' : 'done' };
}

/** The message inside '[API Error: {"error":{"message":"..."}}]'. */
function plainMessage(text: string): string {
  const json = /^\[API Error: (\{.*\})\]$/s.exec(text)?.[1];
  return textOf(within(parseObject(json ?? ''), 'error'), 'message') ?? text;
}

/** An exit code is 41 to 53, or the HTTP status of the model's answer modulo 256. */
function endOf(code: number, failure: string | null, errors: string): Finished {
  const reason = failure ?? (errors === '' ? `it ended with exit code ${code}` : errors);
  const end = (cause?: Finished['cause']): Finished => ({
    type: 'agent.finished',
    ok: false,
    reason,
    ...(cause === undefined ? {} : { cause }),
  });
  if (code === 41) return end('sign-in');
  if (code === 53) return end('turns');
  if (code === 130) return end('interrupted');
  const status = code >= 400 % 256 && code <= 499 % 256 ? code + 256 : null;
  if (status !== null || failure !== null) return end(causeOf(status, reason));
  return end();
}
