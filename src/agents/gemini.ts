// agents/gemini.ts: Gemini CLI.
// Its file in /etc counts only if every directory above it belongs to root, which nothing inside a sandbox does: a file there would
// be passed over without a word, and the hooks with it. So they stand in the settings of its home, which are written anew
// before it starts and read once. A project's own settings are not loaded with --skip-trust; the rest is in env.
import type { Agent, AgentInput, AgentPlan, HookDoor } from './agent.ts';
import { actionOf, stopRequest, toolRequest } from './gemini-tools.ts';
import { AGENT_HOOK_SECONDS, hookCommand, REFUSED } from './hook-command.ts';
import { cut, numberOf, parseObject, textOf, within } from './json.ts';
import { causeOf, driveLines, type Finished, type LineReader } from './line-driver.ts';
import type { AgentEvent } from '../protocol/agent-event.ts';

export const gemini: Agent = {
  name: 'gemini',
  title: 'Gemini CLI',
  install: {
    package: '@google/gemini-cli',
    version: '0.61.0',
    program: 'gemini',
    entry: { x64: '@google/gemini-cli/bundle/gemini.js', arm64: '@google/gemini-cli/bundle/gemini.js' },
    node: 20,
  },
  signIns: [
    {
      kind: 'api-key',
      title: 'API key of Google AI Studio',
      how: 'Create one at https://aistudio.google.com/apikey.',
      found: ['GEMINI_API_KEY'],
      secret: {
        host: 'generativelanguage.googleapis.com',
        port: 443,
        header: 'x-goog-api-key',
        send: '{}',
        env: 'GEMINI_API_KEY',
        endpoint: 'GOOGLE_GEMINI_BASE_URL',
      },
    },
    {
      kind: 'login',
      title: 'Log-in with a Google account',
      how: 'Choose "Sign in with Google": a page opens in your browser and gives a code to paste.',
      found: [],
      secret: {
        host: 'cloudcode-pa.googleapis.com',
        port: 443,
        header: 'authorization',
        send: 'Bearer {}',
        env: 'GOOGLE_CLOUD_ACCESS_TOKEN',
        endpoint: 'CODE_ASSIST_ENDPOINT',
      },
      login: {
        argv: ['--skip-trust'],
        file: '.gemini/oauth_creds.json',
        hosts: [
          'accounts.google.com',
          'oauth2.googleapis.com',
          'www.googleapis.com',
          'cloudcode-pa.googleapis.com',
          'developers.google.com',
        ],
        read: readLogin,
        refresh: {
          url: 'https://oauth2.googleapis.com/token',
          clientId: '681255809395-oo8ft2oprdrnp9e3aqf6av3hmdib135j.apps.googleusercontent.com',
          // Published with the program, as that of every installed application.
          clientSecret: ['GOCSPX', '4uHgMPm', '1o7Sk', 'geV6Cu5clXFsxl'].join('-'),
        },
      },
    },
  ],
  hosts: [],
  scratch: ['.gemini/'],
  gate: 'enforced',
  resumes: true,
  readHook: (event, json) => {
    if (event === 'BeforeTool') return toolRequest('before', json);
    if (event === 'AfterTool') return toolRequest('after', json);
    return event === 'AfterAgent' ? stopRequest(json) : null;
  },
  plan,
  drive: (io) => driveLines(io, createReader),
};

function plan(input: AgentInput): AgentPlan {
  const headless = input.mode === 'headless';
  return {
    argv: [
      ...input.program,
      '--skip-trust',
      '--yolo',
      ...(headless ? ['--output-format', 'stream-json'] : []),
      ...(input.model === null ? [] : ['--model', input.model]),
      ...(input.session === null ? ['--session-id', input.newSession] : ['--resume', input.session]),
      ...(headless || input.prompt === '' ? [] : [`--prompt-interactive=${input.prompt}`]),
    ],
    env: {
      GEMINI_CLI_NO_RELAUNCH: 'true',
      // With it, the token is taken from its variable and not from a file.
      ...(input.signIn?.kind === 'login' ? { GOOGLE_GENAI_USE_GCA: 'true' } : {}),
      // What the home holds of an earlier turn, and files named .env, decide nothing.
      GEMINI_CLI_TRUSTED_FOLDERS_PATH: TRUSTED,
      GEMINI_CLI_SYSTEM_SETTINGS_PATH: '/etc/gemini-cli/settings.json',
      GEMINI_CLI_SYSTEM_DEFAULTS_PATH: '/etc/gemini-cli/system-defaults.json',
    },
    files: [{ to: TRUSTED, content: '{}\n' }],
    homeFiles: [{ path: '.gemini/settings.json', content: `${JSON.stringify(settings(input), null, 2)}\n` }],
  };
}

const TRUSTED = '/etc/gemini-cli/trusted-folders.json';

function settings({ signIn, maxTurns, hooks, newSession }: AgentInput): object {
  return {
    security: {
      ...(signIn === null
        ? {}
        : { auth: { selectedType: signIn.kind === 'login' ? 'oauth-personal' : 'gemini-api-key' } }),
      folderTrust: { enabled: true },
    },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    general: { enableAutoUpdate: false, enableAutoUpdateNotification: false, sessionRetention: { enabled: false } },
    advanced: { ignoreLocalEnv: true },
    ...(maxTurns === null ? {} : { model: { maxSessionTurns: maxTurns } }),
    ...(hooks === null
      ? {}
      : {
          hooksConfig: { enabled: true, disabled: [], notifications: false },
          hooks: Object.fromEntries(
            ['BeforeTool', 'AfterTool', 'AfterAgent'].map((event) => [event, [hookOf(hooks, event, newSession)]]),
          ),
        }),
  };
}

function readLogin(text: string): { access: string; refresh: string | null; expiresAtMs: number | null } {
  const tokens = parseObject(text.trim());
  const access = textOf(tokens, 'access_token');
  if (access === null) throw new Error('there is no access token in it');
  return { access, refresh: textOf(tokens, 'refresh_token'), expiresAtMs: numberOf(tokens, 'expiry_date') };
}

/** A hook can be switched off by its name, so nobody knows it beforehand. */
function hookOf(door: HookDoor, event: string, unknown: string): object {
  const command = hookCommand(door, event);
  return {
    ...(event === 'AfterAgent' ? {} : { matcher: '.*' }),
    hooks: [{ type: 'command', name: `${event}-${unknown}`, command, timeout: AGENT_HOOK_SECONDS * 1000 }],
  };
}

function createReader(emit: (event: AgentEvent) => void): LineReader {
  let said = '';
  let lastWord = '';
  let failure: string | null = null;
  // A message comes in pieces.
  const speak = (): void => {
    if (said !== '') emit({ type: 'agent.said', text: said });
    if (said !== '') lastWord = said;
    said = '';
  };
  return {
    chatter:
      /^(YOLO mode is enabled|Warning: (256-color|True color)|Loaded cached credentials|Data collection is disabled)/,
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
      switch (type) {
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
          // The exit code will tell what kind of error it was.
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

function resultOf(json: Readonly<Record<string, unknown>>): {
  outcome: 'done' | 'failed' | 'refused';
  output?: string;
} {
  const error = within(json, 'error');
  const output = textOf(json, 'output') ?? textOf(error, 'message');
  const kept = output === null ? {} : { output: cut(output) };
  if (textOf(json, 'status') === 'success') return { outcome: 'done', ...kept };
  const refused = textOf(error, 'type') === 'policy_violation' || output?.includes(REFUSED) === true;
  return { outcome: refused ? 'refused' : 'failed', ...kept };
}

/** '[API Error: {"error":{"message":"..."}}]': only what it says. */
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
