// agents/claude/reader.ts: turns the output of Claude Code into events.
import type { AgentEvent } from '../../protocol/agent-event.ts';
import { actionOf, outputOf, shortened } from './tools.ts';
import { asObject, cut, listOf, numberOf, textOf, within, type Json } from '../json.ts';

type Finished = Extract<AgentEvent, { type: 'agent.finished' }>;

export interface ClaudeReader {
  /** false: unknown type. */
  object(json: Json): boolean;
  errors(line: string): void;
  interrupted(): void;
  fail(reason: string): void;
  isFinished(): boolean;
  exited(code: number): void;
}

/** Types without anything for the user. A line of any unknown type is shown as it is. */
const QUIET_TYPES = new Set([
  'stream_event',
  'tool_progress',
  'keep_alive',
  'tool_use_summary',
  'control_cancel_request',
]);
const QUIET_SYSTEM =
  /^(status|notification|compact_boundary|background_tasks_changed|turn_duration|thinking_tokens|(hook|task|session|memory|files?|post_turn|stop_hook|vcs|ui|permission)_\w+)$/;

export function createClaudeReader(
  emit: (event: AgentEvent) => void,
  turn: {
    /** Calls that hooks have refused. */
    readonly refused: ReadonlySet<string>;
    /** Whether no further message waits for its own result. */
    isLast(): boolean;
    /** Further retries are useless. */
    giveUp(): void;
    end(): void;
  },
): ClaudeReader {
  let session: string | null = null;
  let finished = false;
  let interrupted = false;
  let unauthorized = 0;
  let lastError = '';
  const used = { inputTokens: 0, outputTokens: 0, costMicros: 0 };
  /** Open calls: tools by call ID. */
  const tools = new Map<string, string>();

  const finish = (event: Omit<Finished, 'type'>): void => {
    if (finished) return;
    finished = true;
    emit({ type: 'agent.finished', ...event });
  };

  const onSystem = (json: Json): boolean => {
    const subtype = textOf(json, 'subtype') ?? '';
    if (subtype === 'init') {
      const id = textOf(json, 'session_id');
      const model = textOf(json, 'model');
      if (id !== session || id === null)
        emit({ type: 'agent.started', session: id, ...(model === null ? {} : { model }) });
      session = id;
      return true;
    }
    if (subtype === 'api_retry') {
      const status = numberOf(json, 'error_status');
      const seconds = Math.ceil((numberOf(json, 'retry_delay_ms') ?? 0) / 1000);
      const why = `${status ?? ''} ${textOf(json, 'error') ?? 'no answer'}`.trim();
      emit({ type: 'agent.waited', why: `The model answered: ${why}. Retrying in ${seconds} s.` });
      // The first failure may be a token that is just being renewed.
      if ((status === 401 || status === 403) && ++unauthorized === 2) turn.giveUp();
      return true;
    }
    return QUIET_SYSTEM.test(subtype);
  };

  const onAssistant = (message: Json): void => {
    // Its own text for a failure, which the result repeats.
    if (textOf(message, 'model') === '<synthetic>') return;
    unauthorized = 0;
    for (const block of listOf(message['content'])) {
      const kind = textOf(block, 'type');
      const text = textOf(block, 'text', 'thinking');
      if (kind === 'text' && text !== null) emit({ type: 'agent.said', text });
      else if (kind === 'thinking' && text !== null) emit({ type: 'agent.thought', text });
      else if (kind === 'tool_use' || kind === 'server_tool_use') {
        const id = textOf(block, 'id') ?? '';
        const tool = textOf(block, 'name') ?? '';
        tools.set(id, tool);
        emit({ type: 'tool.started', id, tool, action: shortened(actionOf(tool, asObject(block)?.['input'])) });
      }
    }
  };

  const onResults = (message: Json): void => {
    for (const part of listOf(message['content'])) {
      if (textOf(part, 'type') !== 'tool_result') continue;
      const id = textOf(part, 'tool_use_id') ?? '';
      const failed = asObject(part)?.['is_error'] === true;
      const output = outputOf(asObject(part)?.['content']);
      const exit = tools.get(id) === 'Bash' ? exitOf(output, failed) : { output };
      tools.delete(id);
      emit({
        type: 'tool.finished',
        id,
        outcome: turn.refused.has(id) ? 'refused' : failed ? 'failed' : 'done',
        ...exit,
        output: cut(exit.output),
      });
    }
  };

  const onResult = (json: Json): void => {
    const usage = within(json, 'usage');
    used.inputTokens +=
      (numberOf(usage, 'input_tokens') ?? 0) +
      (numberOf(usage, 'cache_creation_input_tokens') ?? 0) +
      (numberOf(usage, 'cache_read_input_tokens') ?? 0);
    used.outputTokens += numberOf(usage, 'output_tokens') ?? 0;
    used.costMicros += costOf(json);
    emit({ type: 'agent.used', ...used });
    const failure = failureOf(json);
    if (failure === null && !turn.isLast()) return;
    if (failure === null) finish({ ok: true, text: textOf(json, 'result') ?? '' });
    else if (unauthorized > 1) finish({ ok: false, cause: 'sign-in', reason: SIGN_IN });
    else finish({ ok: false, ...failure, ...(interrupted ? { cause: 'interrupted' as const } : {}) });
    turn.end();
  };

  return {
    object(json) {
      const type = textOf(json, 'type') ?? '';
      switch (type) {
        case 'system':
          return onSystem(json);
        case 'assistant':
          onAssistant(within(json, 'message'));
          return true;
        case 'user':
          onResults(within(json, 'message'));
          return true;
        case 'result':
          onResult(json);
          return true;
        case 'rate_limit_event': {
          const why = limitOf(within(json, 'rate_limit_info'));
          if (why !== null) emit({ type: 'agent.waited', why });
          return true;
        }
        default:
          return QUIET_TYPES.has(type);
      }
    },
    errors(line) {
      lastError = line.slice(0, 500);
    },
    interrupted() {
      interrupted = true;
    },
    fail: (reason) => finish({ ok: false, reason }),
    isFinished: () => finished,
    exited: (code) =>
      finish({
        ok: false,
        reason: lastError === '' ? `It ended with ${code} and without a result.` : lastError,
        ...(interrupted ? { cause: 'interrupted' as const } : {}),
      }),
  };
}

const SIGN_IN = 'The model does not accept the sign-in.';

/** `subtype` is "success" even for a failed call, so only `is_error` counts. */
function failureOf(json: Json): Omit<Finished, 'type' | 'ok'> | null {
  const subtype = textOf(json, 'subtype') ?? '';
  if (json['is_error'] !== true && !subtype.startsWith('error')) return null;
  const texts = listOf(json['errors']).filter((text) => typeof text === 'string');
  const reason = textOf(json, 'result') ?? (texts.join('\n') || subtype);
  const status = numberOf(json, 'api_error_status');
  const ending = textOf(json, 'terminal_reason') ?? '';
  if (subtype === 'error_max_turns') return { reason, cause: 'turns' };
  if (subtype === 'error_max_budget_usd') return { reason, cause: 'budget' };
  if (status === 401 || status === 403 || /please run \/login|invalid api key/i.test(reason))
    return { reason, cause: 'sign-in' };
  if (status === 429 || /usage limit|hit your limit/i.test(reason)) return { reason, cause: 'rate-limit' };
  if (ending.startsWith('aborted')) return { reason: 'It was interrupted.', cause: 'interrupted' };
  return { reason, ...(ending === 'api_error' || status !== null ? { cause: 'api' as const } : {}) };
}

/** The total accumulates over the turns of a session; the cost since the last result does not. */
function costOf(json: Json): number {
  const models = asObject(json['model_usage_since_last_result']);
  const dollars =
    models === null
      ? (numberOf(json, 'total_cost_usd') ?? 0)
      : Object.values(models).reduce((sum: number, model) => sum + (numberOf(model, 'costUSD') ?? 0), 0);
  return Math.round(dollars * 1e6);
}

function exitOf(output: string, failed: boolean): { exitCode?: number; output: string } {
  if (!failed) return { exitCode: 0, output };
  const match = /^Exit code (\d{1,3})(?:\n|$)/.exec(output);
  return match === null ? { output } : { exitCode: Number(match[1]), output: output.slice(match[0].length) };
}

function limitOf(info: Json): string | null {
  const status = textOf(info, 'status');
  if (status === null || status === 'allowed') return null;
  const resets = numberOf(info, 'resetsAt');
  const until = resets === null || Math.abs(resets) > 1e11 ? '' : `, until ${new Date(resets * 1000).toISOString()}`;
  return `${status === 'rejected' ? 'The limit of the subscription is reached' : 'The limit of the subscription is near'}${until}.`;
}
