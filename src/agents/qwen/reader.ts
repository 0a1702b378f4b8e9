// agents/qwen/reader.ts: turns the output of Qwen Code into events. Its lines are mostly those of Claude Code.
import type { AgentEvent } from '../../protocol/agent-event.ts';
import { actionOf, outputOf } from '../gemini/tools.ts';
import { REFUSED } from '../hook-command.ts';
import { asObject, listOf, numberOf, textOf, within, type Json } from '../json.ts';
import { brokenOff, causeOf, type Finished, type LineReader } from '../line-driver.ts';

export function createQwenReader(emit: (event: AgentEvent) => void): LineReader {
  const used = { inputTokens: 0, outputTokens: 0 };
  return {
    // Lines with "node" come from Node itself, because the environment names a proxy.
    chatter: /^(YOLO mode is enabled|Warning: |\(node:\d+\) \[UNDICI-EHPA\]|\(Use `node --trace-warnings )/,
    object(json) {
      switch (textOf(json, 'type') ?? '') {
        case 'system': {
          const subtype = textOf(json, 'subtype');
          if (subtype === 'retry' || subtype === 'model_fallback') {
            const seconds = Math.ceil((numberOf(json['data'], 'delayMs') ?? 0) / 1000);
            const when = seconds === 0 ? '' : ` in ${seconds} s`;
            emit({ type: 'agent.waited', why: `The model gave no whole answer. Retrying${when}.` });
            return true;
          }
          if (subtype !== 'init') return false;
          const model = textOf(json, 'model');
          emit({ type: 'agent.started', session: textOf(json, 'session_id'), ...(model === null ? {} : { model }) });
          return true;
        }
        case 'assistant': {
          const message = within(json, 'message');
          const known = listOf(message['content']).every((part) => onPart(part, emit));
          // The total in the result includes earlier turns of the session.
          const usage = message['usage'];
          used.inputTokens += numberOf(usage, 'input_tokens') ?? 0;
          used.outputTokens += numberOf(usage, 'output_tokens') ?? 0;
          return known;
        }
        case 'user':
          return listOf(within(json, 'message')['content']).every((part) => onResult(part, emit));
        case 'stream_event':
          return true;
        case 'result':
          emit({ type: 'agent.used', ...used });
          emit(endOf(json));
          return true;
        default:
          return false;
      }
    },
    ended: (code, errors) => {
      if (code === 0) return { type: 'agent.finished', ok: true };
      return code === 55 ? { ...brokenOff(code, errors), cause: 'budget' } : brokenOff(code, errors);
    },
  };
}

function onPart(part: unknown, emit: (event: AgentEvent) => void): boolean {
  const text = textOf(part, 'text', 'thinking');
  switch (textOf(part, 'type') ?? '') {
    case 'text':
    case 'thinking':
      if (text === null) return false;
      if (text !== '') emit({ type: textOf(part, 'type') === 'text' ? 'agent.said' : 'agent.thought', text });
      return true;
    case 'tool_use': {
      const [id, tool] = [textOf(part, 'id'), textOf(part, 'name')];
      if (id === null || tool === null) return false;
      emit({ type: 'tool.started', id, tool, action: actionOf(tool, asObject(part)?.['input']) });
      return true;
    }
    default:
      return false;
  }
}

function onResult(part: unknown, emit: (event: AgentEvent) => void): boolean {
  const id = textOf(part, 'tool_use_id');
  if (textOf(part, 'type') !== 'tool_result' || id === null) return textOf(part, 'type') === 'text';
  const output = outputOf(asObject(part)?.['content']);
  const failed = asObject(part)?.['is_error'] === true;
  const code = /^Exit Code: (\d{1,3})$/m.exec(output)?.[1];
  emit({
    type: 'tool.finished',
    id,
    outcome: !failed ? 'done' : output.includes(REFUSED) ? 'refused' : 'failed',
    ...(code === undefined ? {} : { exitCode: Number(code) }),
    output,
  });
  return true;
}

function endOf(json: Json): Finished {
  const text = textOf(json, 'result');
  if (json['is_error'] !== true) return { type: 'agent.finished', ok: true, ...(text === null ? {} : { text }) };
  const reason = textOf(within(json, 'error'), 'message') ?? text ?? 'it gave no reason';
  const turns = textOf(json, 'subtype') === 'error_max_turns';
  return { type: 'agent.finished', ok: false, reason, cause: turns ? 'turns' : causeOf(null, reason) };
}
