// agents/gemini/gemini.ts: Gemini CLI.
// It reads its file in /etc only if root owns every directory above it, which is never so inside a sandbox: it would silently ignore
// the file and its hooks. So hooks are in the settings of its home, which ags rewrites before each start and which it reads once.
// With --skip-trust it does not load a project's own settings; variables set the rest.
import type { Agent, AgentInput, AgentPlan, HookListener } from '../agent.ts';
import { createGeminiReader } from './reader.ts';
import { readHookAs } from './tools.ts';
import { AGENT_HOOK_SECONDS, hookCommand } from '../hook-command.ts';
import { numberOf, parseObject, textOf } from '../json.ts';
import { jsonKeys, jsonOf, placesIn } from '../settings.ts';
import { driveLines } from '../line-driver.ts';

/** The names of the same hooks in Claude Code. */
const HOOKS = { BeforeTool: 'PreToolUse', AfterTool: 'PostToolUse', AfterAgent: 'Stop' };

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
      trial: { path: '/v1beta/models' },
    },
    {
      kind: 'login',
      title: 'Log-in with a Google account',
      how: 'Choose "Sign in with Google": a page opens in your browser and shows a code to paste.',
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
          // Published with the program, like that of every installed application.
          more: { client_secret: ['GOCSPX', '4uHgMPm', '1o7Sk', 'geV6Cu5clXFsxl'].join('-') },
        },
      },
    },
  ],
  settings: [
    ...placesIn('.gemini', 'GEMINI.md commands/ skills/'),
    { path: '.gemini/settings.json', part: jsonKeys('mcpServers') },
  ],
  own: {
    protocol: 'Gemini API',
    header: 'x-goog-api-key',
    env: 'GEMINI_API_KEY',
    endpoint: 'GOOGLE_GEMINI_BASE_URL',
    variable: 'GOOGLE_GEMINI_BASE_URL',
    needsModel: false,
    trial: { path: '/v1beta/models' },
  },
  hosts: [],
  scratch: ['.gemini/'],
  gate: 'enforced',
  resumes: true,
  drawsAtWork: true,
  readHook: readHookAs(HOOKS),
  plan,
  drive: (io) => driveLines(io, createGeminiReader),
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
      ...(input.mode === 'command' ? [] : sessionArgs(input)),
      ...(headless || input.prompt === '' ? [] : [`--prompt-interactive=${input.prompt}`]),
    ],
    env: {
      GEMINI_CLI_NO_RELAUNCH: 'true',
      // With it, the token comes from its variable and not from a file.
      ...(input.signIn?.kind === 'login' ? { GOOGLE_GENAI_USE_GCA: 'true' } : {}),
      // Variables that are set take precedence over .env files and leftovers of earlier turns in the home.
      GEMINI_CLI_HOME: input.home,
      GEMINI_RESTRICTED_MODE: 'false',
      GEMINI_CLI_TRUSTED_FOLDERS_PATH: TRUSTED,
      GEMINI_CLI_SYSTEM_SETTINGS_PATH: '/etc/gemini-cli/settings.json',
      GEMINI_CLI_SYSTEM_DEFAULTS_PATH: '/etc/gemini-cli/system-defaults.json',
    },
    files: [{ to: TRUSTED, content: '{}\n' }],
    homeFiles: [
      ...input.settings.filter(({ path }) => path !== '.gemini/settings.json'),
      { path: '.gemini/settings.json', content: `${JSON.stringify(settings(input), null, 2)}\n` },
      { path: '.gemini/.env', content: '' },
    ],
  };
}

function sessionArgs({ session, newSession }: AgentInput): string[] {
  return session === null ? ['--session-id', newSession] : ['--resume', session];
}

const TRUSTED = '/etc/gemini-cli/trusted-folders.json';

function settings({ signIn, hooks, newSession, mode, settings: own }: AgentInput): object {
  return {
    ...jsonOf(own, '.gemini/settings.json'),
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
    ...(hooks === null
      ? {}
      : {
          hooksConfig: { enabled: true, disabled: [], notifications: false },
          hooks: Object.fromEntries(
            Object.keys(HOOKS)
              // The runner asks at the end of a headless turn.
              .filter((event) => mode === 'interactive' || event !== 'AfterAgent')
              .map((event) => [event, [hookOf(hooks, event, newSession)]]),
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

/** A hook can be disabled by its name, so the name is unpredictable. */
function hookOf(listener: HookListener, event: string, unknown: string): object {
  const command = hookCommand(listener, event);
  return {
    ...(event === 'AfterAgent' ? {} : { matcher: '.*' }),
    hooks: [{ type: 'command', name: `${event}-${unknown}`, command, timeout: AGENT_HOOK_SECONDS * 1000 }],
  };
}
