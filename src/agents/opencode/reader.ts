// agents/opencode/reader.ts: turns the output of opencode into events.
import type { AgentEvent } from '../../protocol/agent-event.ts';
import { REFUSED } from '../hook-command.ts';
import { cut, numberOf, textOf, within, type Json } from '../json.ts';
import { brokenOff, causeOf, type Finished, type LineReader } from '../line-driver.ts';
import { actionsOf } from './tools.ts';

export function createOpencodeReader(emit: (event: AgentEvent) => void): LineReader {
  let started = false;
  let lastWord = '';
  let failure: Finished | null = null;
  let used = { inputTokens: 0, outputTokens: 0, costMicros: 0 };
  return {
    chatter: /^$/,
    object(json) {
      const session = textOf(json, 'sessionID');
      if (session !== null && !started) {
        started = true;
        emit({ type: 'agent.started', session });
      }
      const part = within(json, 'part');
      switch (textOf(json, 'type') ?? '') {
        case 'step_start':
          return true;
        case 'text':
        case 'reasoning': {
          const text = textOf(part, 'text');
          if (text === null) return false;
          if (textOf(json, 'type') === 'text') lastWord = text;
          emit({ type: textOf(json, 'type') === 'text' ? 'agent.said' : 'agent.thought', text });
          return true;
        }
        case 'tool_use':
          return onTool(part, emit);
        case 'step_finish': {
          const tokens = within(part, 'tokens');
          const cache = within(tokens, 'cache');
          const sum = (...numbers: (number | null)[]): number => numbers.reduce<number>((all, n) => all + (n ?? 0), 0);
          used = {
            inputTokens: sum(
              used.inputTokens,
              numberOf(tokens, 'input'),
              numberOf(cache, 'read'),
              numberOf(cache, 'write'),
            ),
            outputTokens: sum(used.outputTokens, numberOf(tokens, 'output'), numberOf(tokens, 'reasoning')),
            costMicros: used.costMicros + Math.round((numberOf(part, 'cost') ?? 0) * 1_000_000),
          };
          emit({ type: 'agent.used', ...used });
          return true;
        }
        case 'error': {
          const error = within(json, 'error');
          const data = within(error, 'data');
          const reason = textOf(data, 'message') ?? textOf(error, 'message', 'name') ?? 'it gave no reason';
          const aborted = textOf(error, 'name') === 'MessageAbortedError';
          const cause = aborted ? 'interrupted' : causeOf(numberOf(data, 'statusCode'), reason);
          failure = { type: 'agent.finished', ok: false, reason, cause };
          return true;
        }
        default:
          return false;
      }
    },
    // opencode itself prints no end of the turn.
    ended(code, errors) {
      if (failure !== null) return failure;
      if (code === 0) return { type: 'agent.finished', ok: true, ...(lastWord === '' ? {} : { text: lastWord }) };
      return brokenOff(code, errors);
    },
  };
}

/** opencode reports a call only after it has ended. */
function onTool(part: Json, emit: (event: AgentEvent) => void): boolean {
  const [tool, id] = [textOf(part, 'tool'), textOf(part, 'callID')];
  const state = within(part, 'state');
  const status = textOf(state, 'status');
  if (tool === null || id === null || (status !== 'completed' && status !== 'error')) return false;
  for (const [i, action] of actionsOf(tool, state['input']).entries()) {
    const each = i === 0 ? id : `${id}.${i}`;
    emit({ type: 'tool.started', id: each, tool, action });
    emit({ type: 'tool.finished', id: each, ...resultOf(state, status, i) });
  }
  return true;
}

function resultOf(
  state: Json,
  status: string,
  index: number,
): Omit<Extract<AgentEvent, { type: 'tool.finished' }>, 'type' | 'id'> {
  const output = textOf(state, 'output') ?? textOf(state, 'error');
  const exitCode = numberOf(within(state, 'metadata'), 'exit');
  const [start, end] = [numberOf(state['time'], 'start'), numberOf(state['time'], 'end')];
  const refused = output?.endsWith(REFUSED) === true;
  const failed = status === 'error' || (exitCode !== null && exitCode !== 0);
  return {
    outcome: !failed ? 'done' : status === 'error' && refused ? 'refused' : 'failed',
    ...(exitCode === null ? {} : { exitCode }),
    ...(output === null || index > 0 ? {} : { output: cut(output) }),
    ...(start === null || end === null ? {} : { durationMs: Math.max(0, end - start) }),
  };
}
