// agents/opencode/opencode.ts: opencode.
// Its hooks are plugins: code in its own process. A plugin of the project, or one that an earlier turn left in the home, could undo
// ours. So with hooks, opencode uses no directory that the agent can write: its configuration directory is ours, the home it
// searches for one is ours too, and it does not start if the project has a plugin. As that directory is read-only, opencode does
// not try to install anything into it either.
import type { Agent, AgentInput, AgentPlan, SignIn } from '../agent.ts';
import { REFUSED } from '../hook-command.ts';
import { driveLines } from '../line-driver.ts';
import { jsonKeys, jsonOf, moved, placesIn } from '../settings.ts';
import { createOpencodeReader } from './reader.ts';
import { readHook } from './tools.ts';

type Provider = Pick<Known, 'id' | 'host' | 'path' | 'env'> & {
  readonly model: string | null;
  readonly small: string | null;
};

interface Known {
  /** opencode's name for it. */
  readonly id: string;
  readonly host: string;
  /** Path of the API on the host. */
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

const PROVIDERS: readonly Known[] = [
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

/** Relative to the home. */
const CONFIG = '.config/opencode';

/** An endpoint of the user's own, through the adapter that is built in. */
const OWN: Provider = { id: 'own', host: '', path: '', env: 'AGS_MODEL_KEY', model: null, small: null };

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
  signIns: PROVIDERS.map(({ id, path, title, how, env, host, header, send }): SignIn => ({
    kind: 'api-key',
    title,
    how,
    found: [env],
    secret: { host, port: 443, header, send, env, endpoint: 'AGS_MODEL_URL' },
    trial: {
      // The list of models of OpenRouter is for everyone.
      path: `${path}${id === 'openrouter' ? '/key' : '/models'}`,
      ...(id === 'anthropic' ? { headers: { 'anthropic-version': '2023-06-01' } } : {}),
    },
  })),
  settings: [
    ...placesIn(CONFIG, 'AGENTS.md agent/ agents/ command/ commands/ skill/ skills/'),
    { path: `${CONFIG}/opencode.json`, part: jsonKeys('mcp') },
  ],
  own: {
    protocol: 'OpenAI chat completions',
    header: 'authorization',
    env: 'AGS_MODEL_KEY',
    endpoint: 'AGS_MODEL_URL',
    variable: 'OPENAI_BASE_URL',
    needsModel: true,
    trial: { path: '/models' },
  },
  hosts: [],
  scratch: ['.opencode/'],
  gate: 'enforced',
  resumes: true,
  drawsAtWork: true,
  readHook,
  plan,
  drive: (io) => driveLines(io, createOpencodeReader),
};

/** Ours; opencode reads the `opencode/` below it. */
const CONFIG_HOME = '/etc/opencode-ags';

function plan(input: AgentInput): AgentPlan {
  const provider = input.ownEndpoint ? OWN : PROVIDERS.find(({ host }) => host === input.signIn?.secret.host);
  const model = modelOf(input.model, provider);
  const headless = input.mode === 'headless';
  const command = input.mode === 'command';
  const own = input.settings.filter(({ path }) => path !== `${CONFIG}/opencode.json`);
  return {
    argv: [
      ...(input.hooks === null ? [] : ['/bin/sh', `${CONFIG_HOME}/start`]),
      ...input.program,
      ...(headless ? ['run', '--format', 'json', '--title', input.task] : []),
      ...(command ? [] : ['--auto', ...(model === null ? [] : ['--model', model])]),
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
            { to: `${CONFIG_HOME}/start`, content: START },
            // It exits at once if it needs to write this file and cannot.
            { to: `${CONFIG_HOME}/opencode/.gitignore`, content: '*\n' },
            ...moved(own, [`${CONFIG}/`], CONFIG, `${CONFIG_HOME}/opencode`),
          ],
    // Makes it believe that its packages are installed.
    homeFiles:
      input.hooks === null
        ? [
            { path: '.config/opencode/node_modules/.keep', content: '' },
            { path: '.config/opencode/package-lock.json', content: `${JSON.stringify(INSTALLED)}\n` },
            ...own,
          ]
        : [],
  };
}

const INSTALLED = { lockfileVersion: 3, packages: { '': { dependencies: { '@opencode-ai/plugin': '*' } } } };

function modelOf(model: string | null, provider: Provider | undefined): string | null {
  if (provider === undefined) return model;
  const name = model ?? provider.model;
  if (name === null) return null;
  return name.startsWith(`${provider.id}/`) ? name : `${provider.id}/${name}`;
}

function config(input: AgentInput, provider: Provider | undefined, model: string | null): object {
  return {
    autoupdate: false,
    share: 'disabled',
    snapshot: false,
    ...jsonOf(input.settings, `${CONFIG}/opencode.json`),
    ...(input.mode === 'command' ? { permission: 'allow' } : {}),
    // Without the project's configuration, its instructions are still read.
    ...(input.hooks === null
      ? {}
      : { instructions: ['AGENTS.md', 'CLAUDE.md'].map((name) => `${input.project}/${name}`) }),
    ...(provider === undefined
      ? {}
      : {
          model,
          small_model: provider.small === null ? model : `${provider.id}/${provider.small}`,
          enabled_providers: [provider.id],
          provider: {
            [provider.id]: {
              ...(provider === OWN ? ownProvider(model) : {}),
              options: {
                baseURL: `${input.endpoint ?? `https://${provider.host}`}${provider.path}`,
                apiKey: `{env:${provider.env}}`,
              },
            },
          },
        }),
  };
}

function ownProvider(model: string | null): object {
  const name = model?.slice(OWN.id.length + 1) ?? '';
  return { npm: '@ai-sdk/openai-compatible', name: 'model endpoint', models: { [name]: { name, tool_call: true } } };
}

// Invariant: a call continues only after the answer {"allow":true}; any other answer, or none, refuses it.

/** Spelt so that tools do not take this text for a module. Commands get the XDG_CONFIG_HOME of `home` back; ours is for opencode only. */
function gatePlugin(url: string, home: string): string {
  return `const ask = globalThis.fetch;
const url = ${JSON.stringify(url)};

async function gate(event, body) {
  let reason = 'it gave no answer';
  try {
    const answer = await ask(url + '/' + event, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(3_600_000),
    });
    const verdict = await answer.json();
    if (answer.status === 200 && verdict.allow === true) return;
    if (typeof verdict.reason === 'string') reason = verdict.reason;
  } catch (error) {
    reason = String(error);
  }
  throw new Error(reason + '\\n${REFUSED}');
}

EXPORT const gatePlugin = async () => ({
  'tool.execute.before': async (input, output) => gate('before', { tool: input.tool, args: output.args }),
  'tool.execute.after': async (input) => gate('after', { tool: input.tool, args: input.args }),
  'shell.env': async (input, output) => {
    output.env.XDG_CONFIG_HOME = ${JSON.stringify(`${home}/.config`)};
  },
});
`.replace('EXPORT', 'export');
}

/**
 * Started in place of opencode. opencode also imports plugins that it finds from the project upwards, whatever its options: code
 * in the process that asks the hooks. It looks for them once, at its start, so it is not started if there are any.
 */
const START = `refuse() {
  echo "opencode would load $1 into its own process, where it could undo the hooks. Remove it, or run without hooks." >&2
  exit 78
}
at=$(pwd -P)
while :; do
  above=\${at%/}
  for folder in plugin plugins; do
    [ ! -e "$above/.opencode/$folder" ] || refuse "$above/.opencode/$folder"
  done
  for file in opencode.json opencode.jsonc .opencode/opencode.json .opencode/opencode.jsonc; do
    [ -e "$above/$file" ] || continue
    grep -qiE 'plugin|\\\\u' "$above/$file"
    [ $? -eq 1 ] || refuse "plugins of $above/$file"
  done
  [ "$at" != / ] || break
  at=$(dirname "$at")
done
exec "$@"
`;
