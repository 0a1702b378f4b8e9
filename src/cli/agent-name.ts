// cli/agent-name.ts: finds an agent by its name, or suggests a similar one.
import { AGENTS, agentNamed as find } from '../agents/agents.ts';
import type { Agent } from '../agents/agent.ts';
import { suggest } from '../config/file/suggest.ts';
import { visible } from '../lib/sanitize.ts';
import { AgsError } from '../protocol/errors.ts';

export function agentNamed(word: string): Agent {
  const agent = find(word);
  if (agent !== undefined) return agent;
  const names = AGENTS.map(({ name }) => name);
  const near = suggest(word, names);
  throw new AgsError('agent.unknown', `ags knows no agent "${visible(word)}".`, {
    hint: `${near === undefined ? '' : `Did you mean: ${near}\n`}Agents: ${names.join(', ')}`,
  });
}
