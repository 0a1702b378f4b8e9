// agents/codex/reader.ts: turns the output of Codex CLI into events. Calls that a hook refused are not in it.
import type { Action, AgentEvent } from '../../protocol/agent-event.ts';
import type { AgentDriver, AgentIo } from '../agent.ts';
import { plainCommand } from './tools.ts';
import { asObject, cut, listOf, numberOf, rawInput, textOf, within, type Json } from '../json.ts';
import { causeOf, driveLines, type LineReader } from '../line-driver.ts';

export function driveCodex(io: AgentIo): AgentDriver {
  return driveLines(io, createReader);
}

interface Call {
  readonly tool: string;
  readonly action: Action;
}

const CHATTER = /could not create PATH aliases|^Reading (additional input|prompt) from stdin/;

function createReader(emit: (event: AgentEvent) => void): LineReader {
  let lastWord = '';
  let lastError = '';
  const open = new Map<string, number>();

  /** One item may write several files; each becomes its own call. */
  const callId = (id: string, at: number): string => (at === 0 ? id : `${id}.${at}`);
  const startCalls = (id: string, calls: readonly Call[]): void => {
    if (open.has(id)) return;
    open.set(id, calls.length);
    for (const [at, { tool, action }] of calls.entries())
      emit({ type: 'tool.started', id: callId(id, at), tool, action });
  };
  const onCalls = (type: string, id: string, item: Json, calls: readonly Call[]): boolean => {
    if (type === 'item.updated') return true;
    startCalls(id, calls);
    if (type !== 'item.completed') return true;
    const exitCode = numberOf(item, 'exit_code');
    const output = outputOf(item);
    for (let at = 0; at < (open.get(id) ?? 0); at++)
      emit({
        type: 'tool.finished',
        id: callId(id, at),
        outcome: outcomeOf(item, exitCode),
        ...(exitCode === null ? {} : { exitCode }),
        ...(output === '' ? {} : { output: cut(output) }),
      });
    open.delete(id);
    return true;
  };

  const onItem = (type: string, item: Json): boolean => {
    const id = textOf(item, 'id') ?? '';
    const kind = textOf(item, 'type') ?? '';
    const text = textOf(item, 'text', 'message') ?? '';
    switch (kind) {
      case 'agent_message':
        if (type !== 'item.completed') return true;
        lastWord = text;
        emit({ type: 'agent.said', text });
        return true;
      case 'reasoning':
        if (type === 'item.completed') emit({ type: 'agent.thought', text });
        return true;
      case 'error':
        // A warning: the turn continues.
        emit({ type: 'agent.printed', stream: 'stderr', text });
        return true;
      case 'command_execution':
      case 'file_change':
      case 'mcp_tool_call':
      case 'web_search':
        return onCalls(type, id, item, callsOf(kind, item));
      case 'todo_list':
        return true;
      default:
        return false;
    }
  };

  const fail = (reason: string): void =>
    emit({ type: 'agent.finished', ok: false, reason, cause: causeOf(null, reason) });

  return {
    chatter: CHATTER,
    object(json) {
      const type = textOf(json, 'type') ?? '';
      switch (type) {
        case 'thread.started':
          emit({ type: 'agent.started', session: textOf(json, 'thread_id') });
          return true;
        case 'turn.started':
          return true;
        case 'item.started':
        case 'item.updated':
        case 'item.completed':
          return onItem(type, within(json, 'item'));
        case 'turn.completed': {
          const usage = within(json, 'usage');
          emit({
            type: 'agent.used',
            inputTokens: numberOf(usage, 'input_tokens') ?? 0,
            outputTokens: numberOf(usage, 'output_tokens') ?? 0,
          });
          emit({ type: 'agent.finished', ok: true, text: lastWord });
          return true;
        }
        case 'turn.failed':
          fail(textOf(within(json, 'error'), 'message') ?? (lastError || 'The turn failed.'));
          return true;
        case 'error': {
          const message = textOf(json, 'message') ?? '';
          lastError = message;
          // The end of the turn repeats the last of them.
          if (message.startsWith('Reconnecting')) emit({ type: 'agent.waited', why: message });
          return true;
        }
        default:
          return false;
      }
    },
    ended(code, errors) {
      const reason = lastError || errors || `It ended with ${code} and without a result.`;
      return {
        type: 'agent.finished',
        ok: false,
        reason,
        ...(lastError === '' ? {} : { cause: causeOf(null, lastError) }),
      };
    },
  };
}

function callsOf(kind: string, item: Json): Call[] {
  switch (kind) {
    case 'command_execution':
      return [
        {
          tool: 'exec_command',
          action: { kind: 'command', command: cut(plainCommand(textOf(item, 'command') ?? '')) },
        },
      ];
    case 'file_change':
      return listOf(item['changes']).map((change) => ({
        tool: 'apply_patch',
        action: { kind: 'write', path: textOf(change, 'path') ?? '', change: changeOf(textOf(change, 'kind')) },
      }));
    case 'web_search':
      return [{ tool: 'web_search', action: { kind: 'search', what: textOf(item, 'query') ?? '' } }];
    default:
      return [
        {
          tool: `${textOf(item, 'server') ?? ''}.${textOf(item, 'tool') ?? ''}`,
          action: { kind: 'other', input: rawInput(item['arguments']) },
        },
      ];
  }
}

function changeOf(kind: string | null): 'write' | 'edit' | 'delete' {
  return kind === 'add' ? 'write' : kind === 'delete' ? 'delete' : 'edit';
}

function outcomeOf(item: Json, exitCode: number | null): 'done' | 'failed' | 'refused' {
  const status = textOf(item, 'status');
  if (status === 'declined') return 'refused';
  return status === 'failed' || (exitCode ?? 0) !== 0 ? 'failed' : 'done';
}

function outputOf(item: Json): string {
  const text = textOf(item, 'aggregated_output') ?? textOf(within(item, 'error'), 'message');
  if (text !== null) return text;
  return listOf(within(item, 'result')['content'])
    .map((part) => textOf(part, 'text') ?? `[${textOf(asObject(part), 'type') ?? 'part'}]`)
    .join('\n');
}
