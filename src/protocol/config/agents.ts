// protocol/config/agents.ts: the key `agents`, for the model endpoints of the user and the user's own settings of agents.
import { z } from 'zod';
import { list, section, text, words } from './forms.ts';
import { source } from './source.ts';
import { HEADER, MODEL_URL, PLACE, WORDS } from './words.ts';

/** `command` stands for every agent that is a command line. A test compares this list with the agents that ags has. */
export const CONFIGURED_AGENTS = ['claude', 'codex', 'gemini', 'qwen', 'opencode', 'command'] as const;

const agent = section({
  url: text(MODEL_URL, WORDS.modelUrl).meta({
    description:
      'The base URL of a model endpoint of yours: a company gateway, LiteLLM, OpenRouter, Ollama and the like, written as for the agent itself (docs/agents/endpoints.md). `http://` only on this machine: `http://localhost:11434`. The sandbox reaches it through the gateway, and nothing else on that host.',
    examples: ['https://llm.example.com'],
    needsTrust: true,
  }),
  key: source.meta({
    description:
      'Where the key of `url` is stored: one of these. Default: what `ags auth <agent>` has stored for this endpoint, if anything.',
    examples: [{ env: 'LLM_KEY' }],
    needsTrust: true,
  }),
  header: text(HEADER, WORDS.header).meta({
    description:
      'The header that carries the key; `authorization` sends it as "Bearer <key>". Default: what the agent itself uses with such endpoints.',
    examples: ['x-api-key'],
    needsTrust: true,
  }),
  model: words('the name of a model').meta({
    description: 'The model of this agent, as the endpoint calls it. It wins over `tasks.model`.',
    examples: ['qwen3-coder'],
  }),
  settings: list(text(PLACE, WORDS.place), 'paths such as ~/.claude/CLAUDE.md').meta({
    description:
      'Your own settings of the agent to show it, copied at its start: instructions, skills, commands, MCP servers (docs/agents/settings.md). Credentials, and files in which something looks like a secret, are refused.',
    examples: [['~/.claude/CLAUDE.md', '~/.claude/skills/']],
    needsTrust: true,
  }),
}).partial();

export const agents = z
  .partialRecord(z.enum(CONFIGURED_AGENTS, { error: `one of ${CONFIGURED_AGENTS.join(', ')}` }), agent, {
    error: 'names of agents, each with its keys',
  })
  .meta({
    description: 'Settings of single agents, by their names; `command` stands for every agent that is a command line.',
    examples: [{ claude: { url: 'https://llm.example.com', key: { env: 'LLM_KEY' } } }],
  });
