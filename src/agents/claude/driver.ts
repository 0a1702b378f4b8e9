// agents/claude/driver.ts: reads the stream of Claude Code, and answers its hooks on it.
// Invariants: nothing throws; every failure answers a hook with an explicit refusal, because an error as an answer would let the
// call run; the goal is sent only after Claude Code has confirmed the hooks.
import type { AgentDriver, AgentIo } from '../agent.ts';
import { createClaudeReader } from './reader.ts';
import { readHook, WRITING_TOOLS } from './tools.ts';
import { parseObject, textOf, within, type Json } from '../json.ts';

const INITIALIZE = 'ags-initialize';
/** Far longer than any hook of ags may take: ags ends those itself. */
const CALLBACK_SECONDS = 3600;
const EVENTS: Readonly<Record<string, string>> = { before: 'PreToolUse', after: 'PostToolUse' };

export function driveClaude(io: AgentIo): AgentDriver {
  let goal = '';
  let open = true;
  const refused = new Set<string>();
  /** Messages that it has not started on, by ID. */
  const waiting = new Set<string>();
  let tellsOfMessages = false;

  const write = (message: object): void => io.write(`${JSON.stringify(message)}\n`);
  const end = (): void => {
    if (open) io.end();
    open = false;
  };
  const say = (text: string): void => {
    // A new ID for every message: it silently skips an ID that the session has seen.
    const uuid = crypto.randomUUID();
    waiting.add(uuid);
    write({
      type: 'user',
      message: { role: 'user', content: text },
      parent_tool_use_id: null,
      session_id: '',
      uuid,
    });
  };
  const interrupt = (): boolean => {
    if (!open) return false;
    reader.interrupted();
    write({ type: 'control_request', request_id: 'ags-interrupt', request: { subtype: 'interrupt' } });
    return true;
  };
  const reader = createClaudeReader(io.emit, {
    refused,
    isLast: () => !tellsOfMessages || waiting.size === 0,
    giveUp: interrupt,
    end,
  });

  const answer = (id: string, response: object): void =>
    write({ type: 'control_response', response: { subtype: 'success', request_id: id, response } });

  const ask = async (callback: string, input: unknown): Promise<string | null> => {
    try {
      const event = EVENTS[callback];
      if (event === undefined) return 'This hook is unknown.';
      const request = readHook(event, input);
      if (request === null) return null;
      const verdict = await io.gate(request);
      return verdict.allow ? null : verdict.reason;
    } catch {
      return 'The hooks could not be asked.';
    }
  };

  const decide = async (id: string, callback: string, request: Json): Promise<void> => {
    const reason = await ask(callback, request['input']);
    if (reason !== null && callback === 'before') refused.add(textOf(request, 'tool_use_id') ?? '');
    answer(id, verdictOf(callback, reason));
  };

  const onControl = (json: Json): boolean => {
    const id = textOf(json, 'request_id');
    const request = within(json, 'request');
    if (id === null) return false;
    switch (textOf(request, 'subtype') ?? '') {
      case 'hook_callback':
        void decide(id, textOf(request, 'callback_id') ?? '', request);
        return true;
      case 'can_use_tool':
        answer(id, { behavior: 'deny', message: 'No user is available to answer.' });
        return true;
      default:
        write({
          type: 'control_response',
          response: { subtype: 'error', request_id: id, error: 'ags does not know this request.' },
        });
        return true;
    }
  };

  const onAnswer = (response: Json): void => {
    if (textOf(response, 'request_id') !== INITIALIZE) return;
    const took = within(response, 'response')['hooks_applied'] !== false;
    if (textOf(response, 'subtype') === 'success' && took) return say(goal);
    reader.fail('Claude Code did not accept the hooks.');
    end();
  };

  const onLifecycle = (json: Json): void => {
    const id = textOf(json, 'command_uuid') ?? '';
    if (!waiting.has(id)) return;
    tellsOfMessages = true;
    if (textOf(json, 'state') !== 'queued') waiting.delete(id);
  };

  return {
    start(prompt) {
      goal = prompt;
      write({ type: 'control_request', request_id: INITIALIZE, request: { subtype: 'initialize', hooks: hooks() } });
    },
    line(text) {
      const json = parseObject(text);
      const type = textOf(json, 'type');
      let known = true;
      if (json === null) known = refuseCut(text, answer);
      else if (type === 'control_request') known = onControl(json);
      else if (type === 'control_response') onAnswer(within(json, 'response'));
      else if (type === 'command_lifecycle') onLifecycle(json);
      else known = reader.object(json);
      if (!known && text.trim() !== '') io.emit({ type: 'agent.printed', stream: 'stdout', text });
    },
    errorLine(text) {
      if (text.trim() === '') return;
      reader.errors(text);
      io.emit({ type: 'agent.printed', stream: 'stderr', text });
    },
    send(text) {
      if (!open || goal === '' || reader.isFinished()) return false;
      say(text);
      return true;
    },
    interrupt,
    exited(code) {
      open = false;
      reader.exited(code);
    },
  };
}

/** `onFailure`: a failing callback blocks. Versions without this option refuse calls that are not answered in time. */
function hooks(): object {
  const common = { timeout: CALLBACK_SECONDS, onFailure: 'block' };
  return {
    PreToolUse: [{ matcher: '*', hookCallbackIds: ['before'], ...common }],
    PostToolUse: [{ matcher: WRITING_TOOLS, hookCallbackIds: ['after'], ...common }],
  };
}

function verdictOf(callback: string, reason: string | null): object {
  if (reason === null) return {};
  if (callback === 'after') return { decision: 'block', reason };
  return {
    hookSpecificOutput: {
      hookEventName: 'PreToolUse',
      permissionDecision: 'deny',
      permissionDecisionReason: reason,
    },
  };
}

/** A call longer than the line limit cannot be judged; without an answer it would wait for an hour. */
function refuseCut(line: string, answer: (id: string, response: object) => void): boolean {
  const head = line.slice(0, 1000);
  const id = /^\{"type":"control_request","request_id":"([\w-]{1,100})"/.exec(head)?.[1];
  if (id === undefined) return false;
  const callback = /"callback_id":"(\w+)"/.exec(head)?.[1] ?? 'before';
  answer(id, verdictOf(callback, 'The call is too large for the hooks to judge. Split it into smaller ones.'));
  return true;
}
