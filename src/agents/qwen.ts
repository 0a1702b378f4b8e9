// agents/qwen.ts: Qwen Code. It comes from Gemini CLI and prints its events as Claude Code does.
// Its system file has the last word on `disableAllHooks`, so that must stand there; two variables would switch hooks off as well.
// The launcher of its package runs an update that it finds in the home, so the program behind it is called.
import type { AgentEvent } from '../protocol/agent-event.ts';
import type { Agent, AgentInput, AgentPlan, SignIn } from './agent.ts';
import { actionOf, outputOf, stopRequest, toolRequest } from './gemini-tools.ts';
import { AGENT_HOOK_SECONDS, hookCommand, REFUSED } from './hook-command.ts';
import { listOf, numberOf, textOf, within, type Json } from './json.ts';
import { causeOf, driveLines, type Finished, type LineReader } from './line-driver.ts';

/** Whoever speaks chat completions will do. By host, as a sign-in names it. */
const PROVIDERS: Readonly<Record<string, { path: string; model: string; found: string; title: string; how: string }>> =
  {
    'dashscope-intl.aliyuncs.com': {
      path: '/compatible-mode/v1',
      model: 'qwen3-coder-plus',
      found: 'DASHSCOPE_API_KEY',
      title: 'API key of Alibaba Cloud Model Studio',
      how: 'Create one at https://modelstudio.console.alibabacloud.com.',
    },
    'coding-intl.dashscope.aliyuncs.com': {
      path: '/v1',
      model: 'qwen3-coder-plus',
      found: 'BAILIAN_CODING_PLAN_API_KEY',
      title: 'key of the Alibaba Cloud Coding Plan',
      how: 'It is shown with your plan at https://modelstudio.console.alibabacloud.com and begins with sk-sp-.',
    },
    'openrouter.ai': {
      path: '/api/v1',
      model: 'qwen/qwen3-coder-plus',
      found: 'OPENROUTER_API_KEY',
      title: 'API key of OpenRouter',
      how: 'Create one at https://openrouter.ai/keys.',
    },
    'api.openai.com': {
      path: '/v1',
      model: 'gpt-5.5',
      found: 'OPENAI_API_KEY',
      title: 'API key of OpenAI',
      how: 'Create one at https://platform.openai.com/api-keys.',
    },
  };

const SYSTEM_SETTINGS = '/etc/qwen-code/settings.json';

export const qwen: Agent = {
  name: 'qwen',
  title: 'Qwen Code',
  install: {
    package: '@qwen-code/qwen-code',
    version: '0.24.4',
    program: 'qwen',
    entry: { x64: '@qwen-code/qwen-code/cli.js', arm64: '@qwen-code/qwen-code/cli.js' },
    node: 22,
  },
  signIns: Object.entries(PROVIDERS).map(([host, { found, title, how }]): SignIn => ({
    kind: 'api-key',
    title,
    how,
    found: [found],
    secret: {
      host,
      port: 443,
      header: 'authorization',
      send: 'Bearer {}',
      env: 'OPENAI_API_KEY',
      endpoint: 'AGS_MODEL_URL',
    },
  })),
  hosts: [],
  scratch: ['.qwen/'],
  gate: 'enforced',
  resumes: true,
  readHook: (event, json) => {
    if (event === 'PreToolUse') return toolRequest('before', json);
    if (event === 'PostToolUse') return toolRequest('after', json);
    return event === 'Stop' ? stopRequest(json) : null;
  },
  plan,
  drive: (io) => driveLines(io, createReader),
};

function plan(input: AgentInput): AgentPlan {
  const headless = input.mode === 'headless';
  const host = input.signIn?.secret.host ?? '';
  const provider = PROVIDERS[host];
  return {
    argv: [
      ...input.program,
      '--yolo',
      '--safe-mode=false',
      ...(provider === undefined ? [] : ['--auth-type', 'openai']),
      ...(headless ? ['--output-format', 'stream-json'] : []),
      ...(input.maxTurns === null ? [] : ['--max-session-turns', String(input.maxTurns)]),
      ...(input.session === null ? ['--session-id', input.newSession] : ['--resume', input.session]),
      ...(headless || input.prompt === '' ? [] : [`--prompt-interactive=${input.prompt}`]),
    ],
    env: {
      QWEN_HOME: `${input.home}/.qwen`,
      QWEN_CODE_SYSTEM_SETTINGS_PATH: SYSTEM_SETTINGS,
      QWEN_CODE_SYSTEM_DEFAULTS_PATH: '/etc/qwen-code/system-defaults.json',
      QWEN_CODE_SUPPRESS_YOLO_WARNING: '1',
      // A variable that is set is not taken from a file named .env.
      QWEN_CODE_SAFE_MODE: '0',
      QWEN_CODE_SIMPLE: '0',
      QWEN_CODE_RELAUNCH_ARGS: '',
      ...(provider === undefined
        ? {}
        : {
            OPENAI_BASE_URL: `${input.endpoint ?? `https://${host}`}${provider.path}`,
            OPENAI_MODEL: input.model ?? provider.model,
          }),
    },
    files: [{ to: SYSTEM_SETTINGS, content: `${JSON.stringify(settings(input), null, 2)}\n` }],
    homeFiles: [],
  };
}

function settings({ hooks }: AgentInput): object {
  return {
    general: { enableAutoUpdate: false, checkForUpdates: false },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    ...(hooks === null
      ? {}
      : {
          disableAllHooks: false,
          hooks: Object.fromEntries(
            ['PreToolUse', 'PostToolUse', 'Stop'].map((event) => [
              event,
              [
                {
                  ...(event === 'Stop' ? {} : { matcher: '*' }),
                  hooks: [{ type: 'command', command: hookCommand(hooks, event), timeout: AGENT_HOOK_SECONDS }],
                },
              ],
            ]),
          ),
        }),
  };
}

function createReader(emit: (event: AgentEvent) => void): LineReader {
  const used = { inputTokens: 0, outputTokens: 0 };
  return {
    chatter: /^(YOLO mode is enabled|Warning: )/,
    object(json) {
      switch (textOf(json, 'type')) {
        case 'system': {
          if (textOf(json, 'subtype') !== 'init') return false;
          const model = textOf(json, 'model');
          emit({ type: 'agent.started', session: textOf(json, 'session_id'), ...(model === null ? {} : { model }) });
          return true;
        }
        case 'assistant': {
          const message = within(json, 'message');
          const known = listOf(message['content']).every((part) => onPart(part, emit));
          // The sum in the result counts earlier turns of the session too.
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
    ended: (code, errors): Finished => {
      const reason = errors === '' ? `it ended with exit code ${code}` : errors;
      if (code === 0) return { type: 'agent.finished', ok: true };
      if (code === 55) return { type: 'agent.finished', ok: false, reason, cause: 'budget' };
      if (code === 130 || code === 143) return { type: 'agent.finished', ok: false, reason, cause: 'interrupted' };
      return { type: 'agent.finished', ok: false, reason, ...(errors === '' ? {} : { cause: causeOf(null, errors) }) };
    },
  };
}

function onPart(part: unknown, emit: (event: AgentEvent) => void): boolean {
  const text = textOf(part, 'text', 'thinking');
  switch (textOf(part, 'type')) {
    case 'text':
    case 'thinking':
      if (text === null) return false;
      if (text !== '') emit({ type: textOf(part, 'type') === 'text' ? 'agent.said' : 'agent.thought', text });
      return true;
    case 'tool_use': {
      const [id, tool] = [textOf(part, 'id'), textOf(part, 'name')];
      if (id === null || tool === null) return false;
      emit({ type: 'tool.started', id, tool, action: actionOf(tool, (part as Json)['input']) });
      return true;
    }
    default:
      return false;
  }
}

function onResult(part: unknown, emit: (event: AgentEvent) => void): boolean {
  const id = textOf(part, 'tool_use_id');
  if (textOf(part, 'type') !== 'tool_result' || id === null) return textOf(part, 'type') === 'text';
  const output = outputOf((part as Json)['content']);
  const failed = (part as Json)['is_error'] === true;
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
