// agent-setup/own-endpoint.ts: how an agent is signed in at a model endpoint of the user's own (`agents.<name>.url`). Pure.
// Invariant: a key of the usual provider never goes there, and a key of the endpoint goes to no other host and port.
import type { Agent, SignIn } from '../agents/agent.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { AgsError } from '../protocol/errors.ts';
import { hostAndPort } from '../protocol/host-name.ts';
import type { ModelEndpoint } from '../protocol/network.ts';

/** null: the usual provider. Throws if the agent cannot use an endpoint. */
export function endpointFor(agent: Agent, { agents }: Pick<EffectiveConfig, 'agents'>): ModelEndpoint | null {
  const endpoint = agents[agent.name]?.endpoint ?? null;
  if (endpoint !== null && agent.own === null)
    throw new AgsError('config.invalid', `${endpoint.origin}: ${agent.title} has no model, so it has no endpoint.`);
  return endpoint;
}

/** The ways to sign in. */
export function waysFor(agent: Agent, endpoint: ModelEndpoint | null): readonly SignIn[] {
  return endpoint === null ? agent.signIns : [ownSignIn(agent, endpoint)];
}

export function ownSignIn({ own, name }: Agent, endpoint: ModelEndpoint): SignIn {
  if (own === null) throw new Error(`${name} has no endpoint`);
  const header = endpoint.header ?? own.header;
  return {
    kind: 'api-key',
    title: `Key of ${endpoint.url}`,
    how: 'Whoever runs this endpoint gives it to you.',
    found: [],
    trial: own.trial,
    secret: {
      host: endpoint.host,
      port: endpoint.port,
      header,
      send: header === 'authorization' ? 'Bearer {}' : '{}',
      env: own.env,
      endpoint: own.endpoint,
      own: { tls: endpoint.tls, path: endpoint.path },
    },
  };
}

/** A URL in the user's environment that the agent alone would follow; null: none, or the configuration has an endpoint. */
export function unfollowedUrl(
  { name, own, title }: Agent,
  endpoint: ModelEndpoint | null,
  env: Readonly<Record<string, string | undefined>>,
): string | null {
  const variable = own?.variable ?? null;
  if (endpoint !== null || variable === null || (env[variable] ?? '') === '') return null;
  return `${variable} is set in your environment, and ags does not follow it: ${title} uses its usual provider. To use that URL, put it into your config.yaml: agents: { ${name}: { url: ... } }`;
}

/** Under which name a credential is stored: beside the sign-in at the usual provider. */
export function credentialName(agent: Agent, own: boolean): string {
  return own ? `${agent.name}-own` : agent.name;
}

/** The host that a credential is stored for. */
export function credentialHost({ secret }: SignIn): string {
  return secret.own === undefined ? secret.host : hostAndPort(secret.host, secret.port);
}
