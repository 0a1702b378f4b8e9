// run/network/plan-network.ts: how programs in a sandbox find the gateway without configuration: listeners on its loopback,
// variables, and, where the gateway ends TLS, an authority to trust. Pure except for the random placeholders.
// Invariant: nothing here is a secret; each has a placeholder.
import type { NetworkPolicy, SecretRule, TcpGrant } from '../../protocol/network.ts';
import type { Listener, SandboxSpec } from '../../protocol/spec.ts';
import type { EffectiveConfig } from '../../config/effective.ts';
import type { Neighbour } from '../planned-services.ts';
import { NO_SECRETS, planTrust, prepareSecrets, type TaskSecrets, type Trust } from './secrets.ts';
import type { HostContext } from '../host-context.ts';

/** Ports of the proxy and the endpoints inside. */
export const PROXY_PORT = 3128;
export const ENDPOINT_PORT = 3129;
/** Port at which an agent's own hooks ask those of ags. */
export const HOOKS_PORT = 3130;
/** Port of nested Docker: the one that clients expect. */
export const DOCKER_PORT = 2375;

export interface PlacedGrant {
  readonly grant: TcpGrant;
  readonly address: string;
  /** Its listener: its own, or the one that has its port on every address. */
  readonly listener: string;
}

export interface NetworkPlan {
  readonly spec: SandboxSpec['network'];
  readonly grants: readonly PlacedGrant[];
  readonly env: Readonly<Record<string, string>>;
  readonly resolvConf: string;
}

/** The network of a run before it starts. */
export interface PlannedNetwork extends NetworkPlan {
  readonly secrets: TaskSecrets;
  readonly files: Trust['files'];
}

const NOTHING: Trust = { files: [], env: {}, java: [] };

/** The network of a sandbox that reaches nothing. */
export const OFFLINE: PlannedNetwork = {
  spec: { kind: 'loopback' },
  grants: [],
  env: {},
  resolvConf: '# No name server: there is no network.\n',
  secrets: NO_SECRETS,
  files: [],
};

/** `possible` is false where only bwrap may create namespaces: a sandbox then has only loopback. */
export async function prepareNetwork(
  context: HostContext,
  config: Pick<EffectiveConfig, 'network' | 'secrets' | 'docker'>,
  possible: boolean,
  beside: readonly Neighbour[] = [],
): Promise<PlannedNetwork> {
  const planned = await prepareGateway(context, config, possible, beside);
  return possible && config.docker.enabled ? withDocker(planned) : planned;
}

async function prepareGateway(
  context: HostContext,
  { network, secrets }: Pick<EffectiveConfig, 'network' | 'secrets'>,
  possible: boolean,
  beside: readonly Neighbour[],
): Promise<PlannedNetwork> {
  if (!possible || network.mode === 'off') return OFFLINE;
  if (secrets.length === 0 && network.rules.length === 0)
    return { ...planNetwork(network, [], new Map(), NOTHING, beside), secrets: NO_SECRETS, files: [] };
  const prepared = await prepareSecrets(network, secrets, context.now);
  const trust = await planTrust(prepared.authority, context);
  return {
    ...planNetwork(network, secrets, prepared.placeholders, trust, beside),
    secrets: prepared,
    files: trust.files,
  };
}

/** Adds a listener for nested Docker; published ports of its containers become listeners while the sandbox runs. */
function withDocker(planned: PlannedNetwork): PlannedNetwork {
  const listeners = planned.spec.kind === 'gateway' ? planned.spec.listeners : [];
  const listener: Listener = { name: 'docker', protocol: 'tcp', address: '127.0.0.1', port: DOCKER_PORT };
  return {
    ...planned,
    spec: { kind: 'gateway', listeners: [...listeners, listener], reach: true },
    env: withEngine(planned.env),
  };
}

function withoutNames(env: NetworkPlan['env'], names: readonly string[]): NetworkPlan['env'] {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
}

const OUR_SERVER = '# Answers names that may be reached; no question leaves the sandbox.\nnameserver 127.0.0.1\n';

function planNetwork(
  policy: NetworkPolicy,
  secrets: readonly SecretRule[],
  placeholders: ReadonlyMap<string, string>,
  trust: { readonly env: Readonly<Record<string, string>>; readonly java: readonly string[] },
  beside: readonly Neighbour[],
): NetworkPlan {
  const grants = placeGrants(policy.tcp);
  const listeners: Listener[] = [
    { name: 'proxy', protocol: 'tcp', address: '127.0.0.1', port: PROXY_PORT },
    { name: 'tls', protocol: 'tcp', address: '0.0.0.0', port: 443 },
    { name: 'web', protocol: 'tcp', address: '0.0.0.0', port: 80 },
    { name: 'names', protocol: 'udp', address: '127.0.0.1', port: 53 },
    ...(secrets.some(({ endpoint }) => endpoint !== null)
      ? [{ name: 'endpoint', protocol: 'tcp', address: '127.0.0.1', port: ENDPOINT_PORT } as const]
      : []),
    ...grants
      .filter(({ listener }) => listener.startsWith('tcp '))
      .map(({ grant, address, listener }): Listener => ({
        name: listener,
        protocol: 'tcp',
        address,
        port: grant.port,
      })),
  ];
  return {
    spec: { kind: 'gateway', listeners, reach: policy.publish.length > 0 },
    grants,
    env: {
      ...proxyEnvironment(
        [...policy.tcp, ...beside].map(({ name }) => name),
        beside.map(({ address }) => address),
        trust.java,
      ),
      ...trust.env,
      ...secretEnvironment(secrets, placeholders),
    },
    resolvConf: OUR_SERVER,
  };
}

const OURS: readonly number[] = [PROXY_PORT, ENDPOINT_PORT, HOOKS_PORT, DOCKER_PORT];
const EVERYWHERE: Readonly<Record<number, string>> = { 443: 'tls', 80: 'web' };

/** The first grant with a port also has it on 127.0.0.1; others are reached by their names. */
function placeGrants(grants: readonly TcpGrant[]): PlacedGrant[] {
  const taken = new Set(OURS);
  return grants.map((grant, i) => {
    const first = !taken.has(grant.port);
    taken.add(grant.port);
    return {
      grant,
      address: first ? '127.0.0.1' : `127.0.1.${i + 1}`,
      listener: EVERYWHERE[grant.port] ?? `tcp ${grant.name}`,
    };
  });
}

/**
 * Adds the variables for nested Docker and removes all_proxy: Docker's older clients accept only SOCKS in it, and refuse to work with
 * any other proxy.
 */
export function withEngine(env: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...withoutNames(env, ['all_proxy', 'ALL_PROXY']),
    DOCKER_HOST: `tcp://127.0.0.1:${DOCKER_PORT}`,
    // Ryuk cleans up after tests with its own image and the engine's socket. Here everything ends with nested Docker.
    TESTCONTAINERS_RYUK_DISABLED: 'true',
  };
}

export function proxyEnvironment(
  names: readonly string[],
  addresses: readonly string[],
  java: readonly string[],
): Record<string, string> {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`;
  const direct = ['localhost', '127.0.0.1', '::1', ...names, ...addresses];
  const both = (name: string, value: string): [string, string][] => [
    [name, value],
    [name.toUpperCase(), value],
  ];
  return {
    ...Object.fromEntries([
      ...both('http_proxy', proxy),
      ...both('https_proxy', proxy),
      // Not socks5h: libraries without SOCKS support fail if they find it here.
      ...both('all_proxy', proxy),
      ...both('no_proxy', direct.join(',')),
    ]),
    // Node from 22.15 and 24 on; older versions connect through the synthetic names.
    NODE_USE_ENV_PROXY: '1',
    YARN_HTTP_PROXY: proxy,
    YARN_HTTPS_PROXY: proxy,
    ELECTRON_GET_USE_PROXY: '1',
    JAVA_TOOL_OPTIONS: [
      ...['http', 'https'].flatMap((scheme) => [
        `-D${scheme}.proxyHost=127.0.0.1`,
        `-D${scheme}.proxyPort=${PROXY_PORT}`,
      ]),
      `-Dhttp.nonProxyHosts=${['localhost', '127.*', '[::1]', ...names].join('|')}`,
      ...java,
    ].join(' '),
  };
}

function secretEnvironment(
  secrets: readonly SecretRule[],
  placeholders: ReadonlyMap<string, string>,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const { name, env: variable, endpoint, own } of secrets) {
    if (variable !== null) env[variable] = placeholders.get(name) ?? '';
    if (endpoint !== null) env[endpoint] = `http://127.0.0.1:${ENDPOINT_PORT}/${name}${own?.path ?? ''}`;
  }
  return env;
}
