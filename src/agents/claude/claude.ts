// agents/claude/claude.ts: Claude Code. Headless, ags drives it over its two streams, and its hooks are callbacks on the same streams:
// decided outside the sandbox, out of reach of every file inside. In a terminal, hooks are commands in a file it cannot change.
// Invariant: it reads no settings but ours. A hook in the project's settings could rewrite a call after it was allowed.
import type { Agent, AgentInput, AgentPlan, SignIn } from '../agent.ts';
import { driveClaude } from './driver.ts';
import { readHook, WRITING_TOOLS } from './tools.ts';
import { AGENT_HOOK_SECONDS } from '../hook-command.ts';
import { numberOf, parseObject, textOf, within } from '../json.ts';
import { jsonKeys, jsonOf, moved, placesIn, SETTINGS } from '../settings.ts';
import { toolHookCommand, toolHooks } from '../tool-hook.ts';

/** It does not start without a key. The gateway replaces the header on every request, whatever it holds. */
const PLACEHOLDER = 'ags-puts-it-in';

/** The same host for all sign-ins: keys and subscriptions. */
const BEARER: SignIn['secret'] = {
  host: 'api.anthropic.com',
  port: 443,
  header: 'authorization',
  send: 'Bearer {}',
  env: null,
  endpoint: 'ANTHROPIC_BASE_URL',
};

const TRIAL = { path: '/v1/models', headers: { 'anthropic-version': '2023-06-01' } };

/** Of the user's settings.json. Hooks, permissions, credentials and commands are left out: they are for the user's own machine. */
const SETTINGS_KEYS = [
  'outputStyle',
  'language',
  'includeCoAuthoredBy',
  'attribution',
  'alwaysThinkingEnabled',
  'effortLevel',
];

export const claude: Agent = {
  name: 'claude',
  title: 'Claude Code',
  install: {
    package: '@anthropic-ai/claude-code',
    version: '2.1.325',
    program: 'claude',
    // Not bin/claude.exe: that file exists only after a script of the package has run.
    entry: { x64: '@anthropic-ai/claude-code-linux-x64/claude', arm64: '@anthropic-ai/claude-code-linux-arm64/claude' },
    node: null,
  },
  signIns: [
    {
      kind: 'api-key',
      title: 'API key of the Claude Console',
      how: 'Create one at https://platform.claude.com/settings/keys. It is billed by usage.',
      found: ['ANTHROPIC_API_KEY'],
      secret: { ...BEARER, header: 'x-api-key', send: '{}' },
      trial: TRIAL,
    },
    {
      kind: 'token',
      title: 'Token of a Claude subscription',
      how: 'Run "claude setup-token" on a machine with a browser; it prints a token that is valid for a year.',
      found: ['CLAUDE_CODE_OAUTH_TOKEN'],
      secret: BEARER,
    },
    {
      kind: 'login',
      title: 'Log-in with a Claude subscription',
      how: 'A page of claude.ai opens in your browser and shows a code to paste.',
      found: [],
      secret: BEARER,
      login: {
        argv: ['auth', 'login', '--claudeai'],
        file: '.claude/.credentials.json',
        hosts: ['claude.ai', 'claude.com', 'platform.claude.com', 'api.anthropic.com'],
        read: readLogin,
        refresh: {
          url: 'https://platform.claude.com/v1/oauth/token',
          clientId: '9d1c250a-e61b-44d9-88ed-5944d1962f5e',
          as: 'json',
        },
      },
    },
  ],
  settings: [
    ...placesIn('.claude', 'CLAUDE.md rules/ skills/ agents/ commands/'),
    { path: '.claude/settings.json', part: jsonKeys(...SETTINGS_KEYS) },
    { path: '.claude.json', part: jsonKeys('mcpServers') },
  ],
  own: {
    protocol: 'Anthropic Messages',
    header: 'authorization',
    env: null,
    endpoint: 'ANTHROPIC_BASE_URL',
    variable: 'ANTHROPIC_BASE_URL',
    needsModel: false,
    trial: TRIAL,
  },
  hosts: [],
  scratch: ['.claude/settings.local.json', '.claude/worktrees/', '.claude/scheduled_tasks.lock'],
  gate: 'enforced',
  resumes: true,
  drawsAtWork: true,
  readHook,
  plan,
  drive: driveClaude,
};

const MERGED: readonly string[] = ['.claude/settings.json', '.claude.json'];

/** As settings, which every subcommand accepts. */
const NO_PERMISSIONS = { skipDangerousModePermissionPrompt: true, permissions: { defaultMode: 'bypassPermissions' } };

const HEADLESS = ['-p', '--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'];

function plan(input: AgentInput): AgentPlan {
  const headless = input.mode === 'headless';
  // A command that a person starts reads its own home, and so do its subcommands.
  const own = input.mode === 'command' ? { argv: [], files: [] } : ownSettings(input.settings);
  const inHome = input.mode === 'command' ? input.settings.filter(({ path }) => !MERGED.includes(path)) : [];
  const model = input.model === null ? [] : ['--model', input.model];
  return {
    argv:
      input.mode === 'command'
        ? [...input.program, ...settingsOption(input, NO_PERMISSIONS), ...model]
        : [
            ...input.program,
            ...(headless ? HEADLESS : []),
            ...settingsOption(input, headless ? {} : { skipDangerousModePermissionPrompt: true }),
            '--dangerously-skip-permissions',
            '--setting-sources',
            '',
            // Without the project's settings it also skips CLAUDE.md; it reads that of an additional directory (see the variable below).
            '--add-dir',
            input.project,
            ...own.argv,
            ...(input.session === null ? ['--session-id', input.newSession] : ['--resume', input.session]),
            ...model,
            ...(headless || input.prompt === '' ? [] : ['--', input.prompt]),
          ],
    env: {
      CLAUDE_CONFIG_DIR: `${input.home}/.claude`,
      CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD: '1',
      // Root inside a sandbox of ags is not root outside.
      IS_SANDBOX: '1',
      // It retries even with a wrong key; the driver ends that.
      CLAUDE_CODE_MAX_RETRIES: '8',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_ERROR_REPORTING: '1',
      DISABLE_TELEMETRY: '1',
      // Otherwise it would not exit before the last background command, and a server never ends.
      ...(headless ? { CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1' } : {}),
      ...keyVariable(input.signIn, input.ownEndpoint),
      ...(input.ownEndpoint ? everyModel(input.model) : {}),
    },
    files: [...(headless || input.hooks === null ? [] : [managedSettings(input.hooks)]), ...own.files],
    homeFiles: headless ? [] : [...inHome, { path: '.claude/.claude.json', content: noQuestions(input) }],
  };
}

/** Those of ags win. */
function settingsOption({ settings }: AgentInput, ours: object): string[] {
  const wanted = { ...jsonOf(settings, '.claude/settings.json'), ...ours };
  return Object.keys(wanted).length === 0 ? [] : ['--settings', JSON.stringify(wanted)];
}

/** Read-only: as another directory with instructions, as a plugin, and as a file of MCP servers. */
function ownSettings(settings: AgentInput['settings']): Pick<AgentPlan, 'argv' | 'files'> {
  const instructions = [
    ...moved(settings, ['.claude/CLAUDE.md'], '.claude', SETTINGS),
    ...moved(settings, ['.claude/rules/'], '', `${SETTINGS}/`),
  ];
  const plugin = moved(settings, ['.claude/skills/', '.claude/agents/', '.claude/commands/'], '.claude', PLUGIN);
  const servers = moved(settings, ['.claude.json'], '.claude.json', MCP);
  return {
    argv: [
      ...(instructions.length === 0 ? [] : ['--add-dir', SETTINGS]),
      ...(plugin.length === 0 ? [] : ['--plugin-dir', PLUGIN]),
      ...(servers.length === 0 ? [] : ['--mcp-config', MCP]),
    ],
    files: [
      ...instructions,
      ...plugin,
      ...(plugin.length === 0
        ? []
        : [{ to: `${PLUGIN}/.claude-plugin/plugin.json`, content: '{"name":"own","version":"1.0.0"}\n' }]),
      ...servers,
    ],
  };
}

const PLUGIN = `${SETTINGS}/plugin`;
const MCP = `${SETTINGS}/mcp.json`;

/** For its small tasks and subagents it would ask for models that another endpoint may not have. */
function everyModel(model: string | null): Record<string, string> {
  if (model === null) return {};
  const roles = ['DEFAULT_OPUS', 'DEFAULT_SONNET', 'DEFAULT_HAIKU', 'SMALL_FAST'];
  return {
    ...Object.fromEntries(roles.map((role) => [`ANTHROPIC_${role}_MODEL`, model])),
    CLAUDE_CODE_SUBAGENT_MODEL: model,
  };
}

function keyVariable(signIn: SignIn | null, own: boolean): Record<string, string> {
  if (signIn === null) return {};
  if (own && signIn.secret.header === 'authorization') return { ANTHROPIC_AUTH_TOKEN: PLACEHOLDER };
  return { [signIn.kind === 'api-key' ? 'ANTHROPIC_API_KEY' : 'CLAUDE_CODE_OAUTH_TOKEN']: PLACEHOLDER };
}

/** Answers the questions of a first start: theme, trust in the directory, use of the key. */
function noQuestions({ mode, project, settings }: AgentInput): string {
  return JSON.stringify({
    ...(mode === 'command' ? jsonOf(settings, '.claude.json') : {}),
    hasCompletedOnboarding: true,
    theme: 'dark',
    customApiKeyResponses: { approved: [PLACEHOLDER], rejected: [] },
    projects: { [project]: { hasTrustDialogAccepted: true } },
  });
}

function managedSettings(listener: NonNullable<AgentInput['hooks']>): { to: string; content: string } {
  const hooks = toolHooks('interactive').map((event) => [
    event,
    [
      {
        ...(event === 'Stop' ? {} : { matcher: event === 'PreToolUse' ? '*' : WRITING_TOOLS }),
        hooks: [
          {
            type: 'command',
            command: toolHookCommand(listener, event),
            timeout: AGENT_HOOK_SECONDS,
            onFailure: 'block',
          },
        ],
      },
    ],
  ]);
  return {
    to: '/etc/claude-code/managed-settings.json',
    content: JSON.stringify({ allowManagedHooksOnly: true, hooks: Object.fromEntries(hooks) }, null, 2),
  };
}

function readLogin(text: string): { access: string; refresh: string | null; expiresAtMs: number | null } {
  const tokens = within(parseObject(text.trim()), 'claudeAiOauth');
  const access = textOf(tokens, 'accessToken');
  if (access === null) throw new Error('there is no access token in it');
  return { access, refresh: textOf(tokens, 'refreshToken'), expiresAtMs: numberOf(tokens, 'expiresAt') };
}
