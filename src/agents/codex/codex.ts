// agents/codex/codex.ts: Codex CLI. Its hooks are commands in a file that it cannot change and that pins them: neither the
// project's configuration nor its own can disable them.
import type { Agent, AgentInput, AgentPlan, HookListener } from '../agent.ts';
import { driveCodex } from './reader.ts';
import { readHook } from './tools.ts';
import { AGENT_HOOK_SECONDS } from '../hook-command.ts';
import { numberOf, parseObject, textOf, within } from '../json.ts';
import { placesIn } from '../settings.ts';
import { toolHookCommand, toolHooks } from '../tool-hook.ts';

const entry = (machine: 'x64' | 'arm64', triple: string): string =>
  `@openai/codex-linux-${machine}/vendor/${triple}-unknown-linux-musl/bin/codex`;

export const codex: Agent = {
  name: 'codex',
  title: 'Codex CLI',
  install: {
    package: '@openai/codex',
    version: '0.166.0',
    program: 'codex',
    entry: { x64: entry('x64', 'x86_64'), arm64: entry('arm64', 'aarch64') },
    node: null,
  },
  signIns: [
    {
      kind: 'api-key',
      title: 'API key of the OpenAI platform',
      how: 'Create one at https://platform.openai.com/api-keys. It is billed by usage.',
      found: ['OPENAI_API_KEY', 'CODEX_API_KEY'],
      secret: {
        host: 'api.openai.com',
        port: 443,
        header: 'authorization',
        send: 'Bearer {}',
        env: null,
        endpoint: 'AGS_CODEX_ENDPOINT',
      },
      trial: { path: '/v1/models' },
    },
    {
      kind: 'login',
      title: 'Log-in with a ChatGPT subscription',
      how: 'It shows a code to enter on a page of openai.com in your browser.',
      found: [],
      secret: {
        host: 'chatgpt.com',
        port: 443,
        header: 'authorization',
        send: 'Bearer {}',
        env: null,
        endpoint: 'AGS_CODEX_ENDPOINT',
      },
      login: {
        argv: ['login', '--device-auth'],
        file: '.codex/auth.json',
        hosts: ['auth.openai.com', 'chatgpt.com'],
        read: readLogin,
        refresh: { url: 'https://auth.openai.com/oauth/token', clientId: 'app_EMoamEEZ73f0CkXaXp7hrann' },
      },
    },
  ],
  settings: [...placesIn('.codex', 'AGENTS.md prompts/ skills/'), { path: '.codex/config.toml', part: serverTables }],
  own: {
    protocol: 'OpenAI Responses',
    header: 'authorization',
    env: null,
    endpoint: 'AGS_CODEX_ENDPOINT',
    variable: 'OPENAI_BASE_URL',
    needsModel: false,
    trial: { path: '/models' },
  },
  hosts: [],
  scratch: [],
  gate: 'enforced',
  countsSession: true,
  omitsRefused: true,
  resumes: true,
  drawsAtWork: true,
  readHook,
  plan,
  drive: driveCodex,
};

function plan(input: AgentInput): AgentPlan {
  const headless = input.mode === 'headless';
  const resume = input.session === null ? [] : ['resume', input.session];
  return {
    argv:
      input.mode === 'command'
        ? commandArgv(input)
        : [
            ...input.program,
            ...(headless ? ['exec', '--json', '--skip-git-repo-check'] : []),
            '--dangerously-bypass-approvals-and-sandbox',
            // Plugins are fetched from GitHub. Input to a running terminal would reach it without any hook.
            '--disable',
            'plugins',
            '--disable',
            'unified_exec_tty',
            ...settings(input).flatMap((setting) => ['-c', setting]),
            ...(input.model === null ? [] : ['-m', input.model]),
            ...resume,
            ...(headless ? ['-'] : input.prompt === '' ? [] : ['--', input.prompt]),
          ],
    env: {
      CODEX_HOME: `${input.home}/.codex`,
      // Otherwise it prints the whole refused call, in addition to telling the model.
      RUST_LOG: 'error,codex_core::tools::router=off',
    },
    files:
      input.hooks === null
        ? []
        : [{ to: '/etc/codex/requirements.toml', content: requirements(input.hooks, input.mode) }],
    // The directory must exist, and no user is there to trust the project.
    homeFiles: [
      ...input.settings.filter(({ path }) => path !== CONFIG),
      {
        path: CONFIG,
        content: [
          `[projects.${quote(input.project)}]\ntrust_level = "trusted"\n`,
          ...input.settings.filter(({ path }) => path === CONFIG).map(({ content }) => content),
        ].join('\n'),
      },
    ],
  };
}

/** Settings alone: its subcommands do not take over other options. */
function commandArgv(input: AgentInput): string[] {
  const more = ['approval_policy="never"', 'sandbox_mode="danger-full-access"', 'features.plugins=false'];
  const model = input.model === null ? [] : [`model=${quote(input.model)}`];
  return [...input.program, ...[...settings(input), ...more, ...model].flatMap((setting) => ['-c', setting])];
}

const CONFIG = '.codex/config.toml';

/** The tables [mcp_servers...] of a configuration, as they are written. */
function serverTables(text: string): string {
  let inside = false;
  const kept = text.split('\n').filter((line) => {
    if (/^\s*\[/.test(line) && /\]\s*(?:#.*)?$/.test(line)) inside = /^\s*\[\s*"?mcp_servers"?\s*\./.test(line);
    return inside;
  });
  if (kept.length === 0) throw new Error('it has no table [mcp_servers.<name>]');
  return `${kept.join('\n')}\n`;
}

/**
 * Models for which it asks, in a terminal and before the goal, whether to take a newer one; as already answered. From the list of models
 * in the program itself.
 */
const SUCCESSORS = {
  'gpt-5.5': 'gpt-6-sol',
  'gpt-5.6-sol': 'gpt-6-sol',
  'gpt-5.6-terra': 'gpt-6-sol',
  'gpt-5.6-luna': 'gpt-6-luna',
};

/** As TOML. On the command line they override every file. */
function settings({ signIn, endpoint, ownEndpoint }: AgentInput): string[] {
  const quiet = [
    'analytics.enabled=false',
    'check_for_update_on_startup=false',
    'feedback.enabled=false',
    // Near a limit it would offer a cheaper model, in a menu that takes the next keys.
    'notice.hide_rate_limit_model_nudge=true',
    `notice.model_migrations={${Object.entries(SUCCESSORS)
      .map((pair) => pair.map(quote).join('='))
      .join(',')}}`,
  ];
  if (endpoint === null) return quiet;
  const base = `${endpoint}${ownEndpoint ? '' : signIn?.kind === 'login' ? '/backend-api/codex' : '/v1'}`;
  // A provider of our own: the built-in one first tries other ways to its host, and requires a key.
  return [
    ...quiet,
    'model_provider="ags"',
    `model_providers.ags={name="OpenAI",base_url=${quote(base)},wire_api="responses"}`,
  ];
}

function requirements(listener: HookListener, mode: AgentInput['mode']): string {
  const hooks = toolHooks(mode).map((event) =>
    [
      `[[hooks.${event}]]`,
      ...(event === 'Stop' ? [] : ['matcher = "*"']),
      `[[hooks.${event}.hooks]]`,
      'type = "command"',
      `command = ${quote(toolHookCommand(listener, event))}`,
      `timeout = ${AGENT_HOOK_SECONDS}`,
    ].join('\n'),
  );
  return ['allow_managed_hooks_only = true', '[features]\nhooks = true', ...hooks, ''].join('\n\n');
}

/** A TOML basic string. A JSON string is one, except for DEL. */
function quote(text: string): string {
  return JSON.stringify(text).replaceAll('\u007F', '\\u007F');
}

function readLogin(text: string): { access: string; refresh: string | null; expiresAtMs: number | null } {
  const tokens = within(parseObject(text.trim()), 'tokens');
  const access = textOf(tokens, 'access_token');
  if (access === null) throw new Error('there is no access token in it');
  return { access, refresh: textOf(tokens, 'refresh_token'), expiresAtMs: expiryOf(access) };
}

function expiryOf(token: string): number | null {
  const claims = parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const seconds = numberOf(claims, 'exp');
  return seconds === null ? null : seconds * 1000;
}
