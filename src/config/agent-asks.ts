// config/agent-asks.ts: model endpoints that a project wants agents to use, and settings of the user's that they are to see (see
// asks.ts). An endpoint sees all prompts and code, and decides what the agent does.
import type { ModelEndpoint } from '../protocol/network.ts';
import { formatSource } from './network/asks.ts';
import type { AgentSettings, EffectiveConfig } from './effective.ts';

export function agentAsks(base: EffectiveConfig, asked: EffectiveConfig): string[] {
  return Object.entries(asked.agents).flatMap(([name, { endpoint, settings }]) => {
    const before = base.agents[name];
    const known = before?.settings.map(({ path }) => path) ?? [];
    return [
      ...(endpoint === null || identity(endpoint) === identity(before?.endpoint ?? null)
        ? []
        : [
            `${endpoint.origin}: agents.${name}.url: send what ${name} reads and writes to ${describeEndpoint(endpoint)}`,
          ]),
      ...settings
        .filter(({ path }) => !known.includes(path))
        .map(({ path, origin }) => `${origin}: agents.${name}.settings: see ~/${path} of your home`),
    ];
  });
}

/** The URL, and where its key is. */
export function describeEndpoint({ url, key, header }: ModelEndpoint): string {
  const carried = header === null ? '' : ` as ${header}`;
  return key === null ? `${url}${carried}` : `${url}, with ${formatSource(key)}${carried}`;
}

function identity(endpoint: AgentSettings['endpoint']): string {
  return JSON.stringify(endpoint === null ? null : { ...endpoint, origin: '' });
}
