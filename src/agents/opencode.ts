// agents/opencode.ts: opencode.
// Its hooks are plugins: code in its own process. A plugin of the project, or one that an earlier turn left in the home, could undo
// ours, so with hooks no place counts that the agent can write: its configuration directory is one of ours, the project's is
// not read, and the home it looks for one in is ours too. As that directory cannot be written, opencode does not try to
// install anything into it either.
import type { Action, AgentEvent } from '../protocol/agent-event.ts';
import type { GateRequest } from '../protocol/hook.ts';
import type { Agent, AgentInput, AgentPlan, SignIn } from './agent.ts';
import { REFUSED } from './hook-command.ts';
import { asObject, cut, numberOf, rawInput, textOf, within, type Json } from './json.ts';
import { causeOf, driveLines, type Finished, type LineReader } from './line-driver.ts';
import { gatePlugin } from './opencode-plugin.ts';

interface Provider {
  /** opencode's own name for it. */
  readonly id: string;
  readonly host: string;
  /** Of the API, below the host. */
  readonly path: string;
  readonly env: string;
  readonly header: string;
  readonly send: string;
  readonly model: string;
  /** For titles and summaries. */
  readonly small: string;
  readonly title: string;
  readonly how: string;
}

const PROVIDERS: readonly Provider[] = [
  {
    id: 'anthropic',
    host: 'api.anthropic.com',
    path: '/v1',
    env: 'ANTHROPIC_API_KEY',
    header: 'x-api-key',
    send: '{}',
    model: 'claude-sonnet-5',
    small: 'claude-haiku-4-5',
    title: 'API key of the Anthropic Console',
    how: 'Create one at https://console.anthropic.com/settings/keys.',
  },
  {
    id: 'openai',
    host: 'api.openai.com',
    path: '/v1',
    env: 'OPENAI_API_KEY',
    header: 'authorization',
    send: 'Bearer {}',
    model: 'gpt-5.5',
    small: 'gpt-5.4-mini',
    title: 'API key of OpenAI',
    how: 'Create one at https://platform.openai.com/api-keys.',
  },
  {
    id: 'openrouter',
    host: 'openrouter.ai',
    path: '/api/v1',
    env: 'OPENROUTER_API_KEY',
    header: 'authorization',
    send: 'Bearer {}',
    model: 'anthropic/claude-sonnet-5',
    small: 'anthropic/claude-haiku-4.5',
    title: 'API key of OpenRouter',
    how: 'Create one at https://openrouter.ai/keys.',
  },
];

export const opencode: Agent = {
  name: 'opencode',
  title: 'opencode',
  install: {
    package: 'opencode-ai',
    version: '1.18.33',
    program: 'opencode',
    entry: { x64: 'opencode-linux-x64/bin/opencode', arm64: 'opencode-linux-arm64/bin/opencode' },
    node: null,
  },
  signIns: PROVIDERS.map(({ title, how, env, host, header, send }): SignIn => ({
    kind: 'api-key',
    title,
    how,
    found: [env],
    secret: { host, port: 443, header, send, env, endpoint: 'AGS_MODEL_URL' },
  })),
  hosts: [],
  scratch: ['.opencode/'],
  gate: 'enforced',
  resumes: true,
  readHook: (event, json) => {
    return event === 'before' || event === 'after' ? toolRequest(event, json) : null;
  },
  plan,
  drive: (io) => driveLines(io, createReader),
};

/** Ours; `opencode/` below it holds what opencode reads. */
const CONFIG_HOME = '/etc/opencode-ags';

function plan(input: AgentInput): AgentPlan {
  const provider = PROVIDERS.find(({ host }) => host === input.signIn?.secret.host);
  const model = modelOf(input.model, provider);
  const headless = input.mode === 'headless';
  return {
    argv: [
      ...input.program,
      ...(headless ? ['run', '--format', 'json', '--title', input.task] : []),
      '--auto',
      ...(model === null ? [] : ['--model', model]),
      ...(input.session === null ? [] : ['--session', input.session]),
      ...(headless || input.prompt === '' ? [] : [`--prompt=${input.prompt}`]),
    ],
    env: {
      OPENCODE_CONFIG_CONTENT: JSON.stringify(config(input, provider, model)),
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_SHARE: '1',
      // Otherwise its file in the home could name a server that configures it.
      OPENCODE_AUTH_CONTENT: '{}',
      ...(input.hooks === null
        ? { OPENCODE_PURE: '1' }
        : { XDG_CONFIG_HOME: CONFIG_HOME, OPENCODE_TEST_HOME: CONFIG_HOME, OPENCODE_DISABLE_PROJECT_CONFIG: '1' }),
    },
    files:
      input.hooks === null
        ? []
        : [
            { to: `${CONFIG_HOME}/opencode/plugin/gate.js`, content: gatePlugin(input.hooks.url, input.home) },
            // It ends at once if it has to write this one and cannot.
            { to: `${CONFIG_HOME}/opencode/.gitignore`, content: '*\n' },
          ],
    // It believes that what it would install is there.
    homeFiles:
      input.hooks === null
        ? [
            { path: '.config/opencode/node_modules/.keep', content: '' },
            { path: '.config/opencode/package-lock.json', content: `${JSON.stringify(INSTALLED)}\n` },
          ]
        : [],
  };
}

const INSTALLED = { lockfileVersion: 3, packages: { '': { dependencies: { '@opencode-ai/plugin': '*' } } } };

function modelOf(model: string | null, provider: Provider | undefined): string | null {
  if (provider === undefined) return model;
  const name = model ?? provider.model;
  return name.startsWith(`${provider.id}/`) ? name : `${provider.id}/${name}`;
}

function config(input: AgentInput, provider: Provider | undefined, model: string | null): object {
  return {
    autoupdate: false,
    share: 'disabled',
    snapshot: false,
    // Where the project's configuration is not read, its instructions still are.
    ...(input.hooks === null
      ? {}
      : { instructions: ['AGENTS.md', 'CLAUDE.md'].map((name) => `${input.project}/${name}`) }),
    ...(input.maxTurns === null ? {} : { agent: { build: { steps: input.maxTurns } } }),
    ...(provider === undefined
      ? {}
      : {
          model,
          small_model: `${provider.id}/${provider.small}`,
          enabled_providers: [provider.id],
          provider: {
            [provider.id]: {
              options: {
                baseURL: `${input.endpoint ?? `https://${provider.host}`}${provider.path}`,
                apiKey: `{env:${provider.env}}`,
              },
            },
          },
        }),
  };
}

function actionsOf(tool: string, input: unknown): Action[] {
  const path = textOf(input, 'filePath', 'path') ?? '';
  switch (tool) {
    case 'bash':
    case 'shell':
      return [{ kind: 'command', command: textOf(input, 'command') ?? '' }];
    case 'write':
      return [{ kind: 'write', path, change: 'write', content: textOf(input, 'content') ?? '' }];
    case 'edit':
      return [{ kind: 'write', path, change: 'edit', content: textOf(input, 'newString') ?? '' }];
    case 'patch':
    case 'apply_patch':
      return patchActions(textOf(input, 'patchText') ?? '');
    case 'read':
    case 'list':
      return [{ kind: 'read', path }];
    case 'glob':
    case 'grep':
      return [{ kind: 'search', what: textOf(input, 'pattern') ?? '' }];
    case 'websearch':
      return [{ kind: 'search', what: textOf(input, 'query') ?? '' }];
    case 'webfetch':
      return [{ kind: 'fetch', url: textOf(input, 'url') ?? '' }];
    default:
      return [{ kind: 'other', input: rawInput(input) }];
  }
}

/** One for each file that the patch speaks of. */
function patchActions(patch: string): Action[] {
  const found = [...patch.matchAll(/^\*\*\* (Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$/gm)];
  if (found.length === 0) return [{ kind: 'other', input: cut(patch) }];
  return found.map(([, what, path, moved]) => {
    if (what === 'Delete') return { kind: 'write', path: path ?? '', change: 'delete' };
    return {
      kind: 'write',
      path: path ?? moved ?? '',
      change: what === 'Update' ? 'edit' : 'write',
      content: cut(patch),
    };
  });
}

/** Before a call: one that cannot be understood is asked about all the same. After it: only if it wrote. */
function toolRequest(when: 'before' | 'after', json: unknown): GateRequest | null {
  const tool = textOf(json, 'tool') ?? '';
  const input = asObject(json)?.['args'] ?? {};
  const actions = actionsOf(tool, input);
  return when === 'before' || actions.some(({ kind }) => kind === 'write') ? { when, tool, actions, input } : null;
}

function createReader(emit: (event: AgentEvent) => void): LineReader {
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
      switch (textOf(json, 'type')) {
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
    // Nothing of its own says that it is done.
    ended(code, errors) {
      if (failure !== null) return failure;
      if (code === 0) return { type: 'agent.finished', ok: true, ...(lastWord === '' ? {} : { text: lastWord }) };
      const reason = errors === '' ? `it ended with exit code ${code}` : errors;
      if (code === 130 || code === 143) return { type: 'agent.finished', ok: false, reason, cause: 'interrupted' };
      return { type: 'agent.finished', ok: false, reason, ...(errors === '' ? {} : { cause: causeOf(null, errors) }) };
    },
  };
}

/** A call is told of once it is over. */
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
): { outcome: 'done' | 'failed' | 'refused'; exitCode?: number; output?: string } {
  const output = textOf(state, 'output') ?? textOf(state, 'error');
  const exitCode = numberOf(within(state, 'metadata'), 'exit');
  const refused = output?.endsWith(REFUSED) === true;
  const failed = status === 'error' || (exitCode !== null && exitCode !== 0);
  return {
    outcome: !failed ? 'done' : status === 'error' && refused ? 'refused' : 'failed',
    ...(exitCode === null ? {} : { exitCode }),
    ...(output === null || index > 0 ? {} : { output: cut(output) }),
  };
}
