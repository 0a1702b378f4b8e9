// agents/qwen/qwen.ts: Qwen Code, a fork of Gemini CLI that prints events like Claude Code.
// Its system settings have the last word on `disableAllHooks`, so the key must be there; two variables would disable hooks as well.
// The launcher of its package runs an update that it finds in the home, so ags calls the program behind it.
import type { Agent, AgentInput, AgentPlan, SignIn } from '../agent.ts';
import { actionOf } from '../gemini/tools.ts';
import { AGENT_HOOK_SECONDS, hookCommand } from '../hook-command.ts';
import { asObject } from '../json.ts';
import { jsonKeys, jsonOf, placesIn } from '../settings.ts';
import { driveLines } from '../line-driver.ts';
import { createQwenReader } from './reader.ts';
import { readToolHook, toolHooks } from '../tool-hook.ts';

/** Any provider of chat completions works. By host, as in a sign-in. */
const PROVIDERS: Readonly<
  Record<string, { path: string; model: string; trial?: string; found: string; title: string; how: string }>
> = {
  'dashscope-intl.aliyuncs.com': {
    path: '/compatible-mode/v1',
    model: 'qwen3-coder-plus',
    trial: '/models',
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
    // Its list of models is for everyone.
    trial: '/key',
    found: 'OPENROUTER_API_KEY',
    title: 'API key of OpenRouter',
    how: 'Create one at https://openrouter.ai/keys.',
  },
  'api.openai.com': {
    path: '/v1',
    model: 'gpt-5.5',
    trial: '/models',
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
  signIns: Object.entries(PROVIDERS).map(([host, { path, trial, found, title, how }]): SignIn => ({
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
    ...(trial === undefined ? {} : { trial: { path: path + trial } }),
  })),
  settings: [
    ...placesIn('.qwen', 'QWEN.md commands/ skills/ agents/'),
    { path: '.qwen/settings.json', part: jsonKeys('mcpServers') },
  ],
  own: {
    protocol: 'OpenAI chat completions',
    header: 'authorization',
    env: 'OPENAI_API_KEY',
    endpoint: 'AGS_MODEL_URL',
    variable: 'OPENAI_BASE_URL',
    needsModel: true,
    trial: { path: '/models' },
  },
  hosts: [],
  scratch: ['.qwen/'],
  gate: 'enforced',
  resumes: true,
  drawsAtWork: true,
  readHook: readToolHook((tool, input) => [actionOf(tool, input)]),
  plan,
  drive: (io) => driveLines(io, createQwenReader),
};

function plan(input: AgentInput): AgentPlan {
  const headless = input.mode === 'headless';
  const host = input.signIn?.secret.host ?? '';
  const provider = input.ownEndpoint ? { path: '', model: '' } : PROVIDERS[host];
  return {
    argv: [
      ...input.program,
      '--yolo',
      '--safe-mode=false',
      ...(provider === undefined ? [] : ['--auth-type', 'openai']),
      ...(headless ? ['--output-format', 'stream-json'] : []),
      ...(input.mode === 'command' ? [] : sessionArgs(input)),
      ...(headless || input.prompt === '' ? [] : [`--prompt-interactive=${input.prompt}`]),
    ],
    env: {
      QWEN_HOME: `${input.home}/.qwen`,
      QWEN_CODE_SYSTEM_SETTINGS_PATH: SYSTEM_SETTINGS,
      QWEN_CODE_SYSTEM_DEFAULTS_PATH: '/etc/qwen-code/system-defaults.json',
      QWEN_CODE_SUPPRESS_YOLO_WARNING: '1',
      // A variable that is set is not read from a .env file.
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
    homeFiles: input.settings.filter(({ path }) => path !== '.qwen/settings.json'),
  };
}

function sessionArgs({ session, newSession }: AgentInput): string[] {
  return session === null ? ['--session-id', newSession] : ['--resume', session];
}

function settings({ hooks, mode, settings: own }: AgentInput): object {
  const mine = jsonOf(own, '.qwen/settings.json');
  return {
    ...mine,
    // After a turn it would ask its model what to remember: unasked, at the cost of turns and money, mostly for a home that is thrown away.
    ...(mode === 'headless'
      ? { memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false, ...asObject(mine['memory']) } }
      : {}),
    // Headless commands need no terminal; in one, some finished commands were reported as hung up.
    ...(mode === 'headless' ? { tools: { shell: { enableInteractiveShell: false } } } : {}),
    general: { enableAutoUpdate: false, checkForUpdates: false },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    ...(hooks === null
      ? {}
      : {
          disableAllHooks: false,
          hooks: Object.fromEntries(
            toolHooks(mode).map((event) => [
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
