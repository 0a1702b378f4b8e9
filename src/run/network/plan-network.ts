// run/network/plan-network.ts: what a sandbox gets so that its programs find the gateway without special care: doors on its loopback,
// variables, and, where TLS is ended for them, an authority to trust. Pure but for the placeholders, which are random.
// Invariant: nothing in here is a secret; a placeholder stands for each.
import type { NetworkPolicy, SecretRule, TcpGrant } from '../../protocol/network.ts';
import type { Door, SandboxSpec } from '../../protocol/spec.ts';
import type { EffectiveConfig } from '../../config/effective.ts';
import type { Neighbour } from '../planned-services.ts';
import type { TaskSecrets, Trust } from './secrets.ts';
import type { World } from '../host-context.ts';

/** Where the proxy and the endpoints are, inside. */
export const PROXY_PORT = 3128;
export const ENDPOINT_PORT = 3129;
/** Where an agent's own hooks ask ours. */
export const HOOKS_PORT = 3130;
/** Where an engine of the task's own is found: the port that clients expect. */
export const DOCKER_PORT = 2375;

export interface PlacedGrant {
  readonly grant: TcpGrant;
  readonly address: string;
  /** The door it comes through: its own, or the one that has its port on every address. */
  readonly door: string;
}

export interface NetworkPlan {
  readonly spec: SandboxSpec['network'];
  readonly grants: readonly PlacedGrant[];
  readonly env: Readonly<Record<string, string>>;
  readonly resolvConf: string;
}

/** All that a run knows of its network before it starts. */
export interface PlannedNetwork extends NetworkPlan {
  readonly secrets: TaskSecrets;
  readonly files: Trust['files'];
}

const NOTHING: Trust = { files: [], env: {}, java: [] };
export const NO_SECRETS: TaskSecrets = { rules: [], placeholders: new Map(), authority: null };

/** Of a sandbox that reaches nobody. */
export const OFFLINE: PlannedNetwork = {
  spec: { kind: 'loopback' },
  grants: [],
  env: {},
  resolvConf: '# No name server: there is no network.\n',
  secrets: NO_SECRETS,
  files: [],
};

/** `possible`: where nobody but bwrap may make a network namespace, a sandbox has none but its loopback. */
export async function prepareNetwork(
  world: World,
  config: Pick<EffectiveConfig, 'network' | 'secrets' | 'docker'>,
  possible: boolean,
  beside: readonly Neighbour[] = [],
): Promise<PlannedNetwork> {
  const planned = await prepareGateway(world, config, possible, beside);
  return possible && config.docker.enabled ? withDocker(planned) : planned;
}

async function prepareGateway(
  world: World,
  { network, secrets }: Pick<EffectiveConfig, 'network' | 'secrets'>,
  possible: boolean,
  beside: readonly Neighbour[],
): Promise<PlannedNetwork> {
  if (!possible || network.mode === 'off') return OFFLINE;
  if (secrets.length === 0 && network.rules.length === 0)
    return { ...planNetwork(network, [], new Map(), NOTHING, beside), secrets: NO_SECRETS, files: [] };
  const { planTrust, prepareSecrets } = await import('./secrets.ts');
  const prepared = await prepareSecrets(network, secrets, world.now);
  const trust = await planTrust(prepared.authority, world);
  return {
    ...planNetwork(network, secrets, prepared.placeholders, trust, beside),
    secrets: prepared,
    files: trust.files,
  };
}

/** A door to the engine, and, as its containers publish ports, more doors while the sandbox runs. */
function withDocker(planned: PlannedNetwork): PlannedNetwork {
  const doors = planned.spec.kind === 'gateway' ? planned.spec.doors : [];
  const door: Door = { name: 'docker', protocol: 'tcp', address: '127.0.0.1', port: DOCKER_PORT };
  return {
    ...planned,
    spec: { kind: 'gateway', doors: [...doors, door], reach: true },
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
  const doors: Door[] = [
    { name: 'proxy', protocol: 'tcp', address: '127.0.0.1', port: PROXY_PORT },
    { name: 'tls', protocol: 'tcp', address: '0.0.0.0', port: 443 },
    { name: 'web', protocol: 'tcp', address: '0.0.0.0', port: 80 },
    { name: 'names', protocol: 'udp', address: '127.0.0.1', port: 53 },
    ...(secrets.some(({ endpoint }) => endpoint !== null)
      ? [{ name: 'endpoint', protocol: 'tcp', address: '127.0.0.1', port: ENDPOINT_PORT } as const]
      : []),
    ...grants
      .filter(({ door }) => door.startsWith('tcp '))
      .map(({ grant, address, door }): Door => ({ name: door, protocol: 'tcp', address, port: grant.port })),
  ];
  return {
    spec: { kind: 'gateway', doors, reach: policy.publish.length > 0 },
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

/** The first with a port has it on 127.0.0.1 too; others are found by their names. */
function placeGrants(grants: readonly TcpGrant[]): PlacedGrant[] {
  const taken = new Set(OURS);
  return grants.map((grant, i) => {
    const first = !taken.has(grant.port);
    taken.add(grant.port);
    return {
      grant,
      address: first ? '127.0.0.1' : `127.0.1.${i + 1}`,
      door: EVERYWHERE[grant.port] ?? `tcp ${grant.name}`,
    };
  });
}

/**
 * With what finds an engine inside. Docker's older clients know one kind of proxy under the name that is left out, and refuse to work
 * with any other.
 */
export function withEngine(env: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...withoutNames(env, ['all_proxy', 'ALL_PROXY']),
    DOCKER_HOST: `tcp://127.0.0.1:${DOCKER_PORT}`,
    // It cleans up after tests, by an image of its own and the engine's socket. Here everything goes with the engine.
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
      // Not socks5h: libraries without SOCKS refuse to work at all if they find it here.
      ...both('all_proxy', proxy),
      ...both('no_proxy', direct.join(',')),
    ]),
    // Node from 22.15 and 24 on; older ones find their way by the names.
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
  for (const { name, env: variable, endpoint } of secrets) {
    if (variable !== null) env[variable] = placeholders.get(name) ?? '';
    if (endpoint !== null) env[endpoint] = `http://127.0.0.1:${ENDPOINT_PORT}/${name}`;
  }
  return env;
}
