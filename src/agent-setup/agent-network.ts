// agent-setup/agent-network.ts: what an agent may reach from its sandbox: the endpoint of its model, and its hosts. Pure.
import type { Agent } from '../agents/agent.ts';
import { parseRule } from '../protocol/network-rule.ts';
import type { NetworkRule, SecretRule } from '../protocol/network.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { ENDPOINT_PORT } from '../run/network/plan-network.ts';
import type { FoundSignIn } from './credentials.ts';

/** The user's configuration wins: a configured secret for the same variable replaces the agent's. */
export function withAgent(config: EffectiveConfig, agent: Agent, secret: SecretRule | null): EffectiveConfig {
  const origin = `agent ${agent.name}`;
  const wanted = [
    ...agent.hosts,
    // An endpoint of the user's own is reached through its listener alone.
    ...(secret === null || secret.own !== undefined
      ? []
      : [secret.port === 443 ? secret.host : `${secret.host}:${secret.port}`]),
  ];
  const rules = wanted.map((text): NetworkRule => {
    const rule = parseRule(text);
    if ('problem' in rule) throw new Error(`a rule of ${agent.name} is wrong: ${text}: ${rule.problem}`);
    return { ...rule, action: 'allow', origin };
  });
  const variables = (rule: SecretRule): string[] => [rule.env, rule.endpoint].filter((name) => name !== null);
  const taken = new Set(config.secrets.flatMap(variables));
  const own = secret === null || variables(secret).some((name) => taken.has(name)) ? [] : [secret];
  return {
    ...config,
    network: { ...config.network, rules: [...config.network.rules, ...rules] },
    secrets: [...config.secrets, ...own],
  };
}

/** URL of the gateway's endpoint for the model, inside; null: the agent connects to the model's host itself. */
export function endpointOf(signIn: FoundSignIn | null): string | null {
  return signIn === null || signIn.secret.endpoint === null
    ? null
    : `http://127.0.0.1:${ENDPOINT_PORT}/${signIn.secret.name}${signIn.secret.own?.path ?? ''}`;
}
