// run/network/open-gateway.ts: put the gateway of a run together. Loaded when somebody first comes to a door.
import { networkInterfaces } from 'node:os';
import type { Decision, NetworkPolicy, NetworkRule, SecretRule, UpstreamProxy } from '../../protocol/network.ts';
import { expandRules } from '../../config/network/presets.ts';
import type { DialUpstream } from '../../gateway/dial/dial.ts';
import { createGateway, type BoundSecret, type Gateway, type GatewayInput } from '../../gateway/gateway.ts';
import type { Post } from '../../gateway/dial/post.ts';
import type { WayOut } from '../../gateway/dial/way-out.ts';
import { readValue } from '../../gateway/values.ts';
import { findAsker } from '../../sandbox/watch/connection-owner.ts';
import { appendEvent } from '../../store/events.ts';
import { networkLogFile, openNetworkLog } from '../../store/network-log.ts';
import type { Loaded, RunNetworkInput } from './run-network.ts';
import type { TaskSecrets } from './secrets.ts';
import { splitPem, systemBundle } from './system-bundle.ts';
import type { World } from '../host-context.ts';

export async function startGateway(
  input: RunNetworkInput,
  run: {
    readonly live: () => readonly NetworkRule[];
    readonly initPid: () => number | null;
    readonly onDecision: (decision: Decision) => void;
  },
): Promise<Loaded> {
  const { world } = input;
  const policy = input.config.network;
  const { events } = input;
  const emit =
    typeof events === 'string'
      ? (event: { type: string }) => void appendEvent(events, { ...event, task: input.id, at: world.now() })
      : events;
  const log = openNetworkLog(networkLogFile(world.stateDir, input.id, input.startedAtMs), {
    task: input.id,
    project: input.project,
    startedAt: new Date(input.startedAtMs).toISOString(),
  });
  const gateway = await assembleGateway(world, input.secrets, {
    run: input.id,
    policy,
    rules: effectiveRules(policy, run.live()),
    grantAddresses: new Map([
      ...input.grants.map(({ grant, address }) => [grant.name, address] as const),
      ...(input.services?.addresses ?? []),
    ]),
    log(decision) {
      run.onDecision(decision);
      log.append(decision);
    },
    onLimit({ first, limit, reason }) {
      if (!first) return;
      input.notice(`Network: ${reason}.`);
      emit({ type: 'network.limit-reached', limit, reason });
    },
    onAsk({ host, port, program }) {
      emit({ type: 'network.asked', host, port, ...(program === undefined ? {} : { program }) });
      input.notice(
        `Network: ${host}:${port} is asked for. Answer with: ags allow ${host}${port === 443 ? '' : `:${port}`}`,
      );
    },
    who: (peerPort) => {
      const pid = run.initPid();
      return pid === null ? Promise.resolve(undefined) : findAsker(pid, peerPort);
    },
    isToken: null,
  });
  return {
    gateway,
    refresh: () => gateway.setRules(effectiveRules(policy, run.live())),
    close() {
      gateway.close();
      log.close();
      const trouble = log.trouble();
      if (trouble !== null) input.notice(`The log of the network could not be written (${trouble}).`);
    },
  };
}

export function effectiveRules(policy: NetworkPolicy, live: readonly NetworkRule[]): NetworkRule[] {
  return [...expandRules(policy), ...live];
}

/** What every gateway has of this machine and its user: values of secrets, upstream proxies, authorities, own addresses. */
export async function assembleGateway(
  world: World,
  secrets: TaskSecrets,
  more: Omit<GatewayInput, 'secrets' | 'upstreams' | 'authority' | 'roots' | 'ownAddresses' | 'now'>,
): Promise<Gateway> {
  const upstreams = await readUpstreams(world, more.policy.upstreams);
  const roots = trustedRoots(world);
  return createGateway({
    ...more,
    secrets: await bindSecrets(world, secrets, postFor(world, more.policy)),
    upstreams,
    authority: secrets.authority,
    roots,
    ownAddresses,
    now: Date.now,
  });
}

/** For what we fetch ourselves. */
export async function wayOut(world: World, policy: NetworkPolicy, granted: readonly string[]): Promise<WayOut> {
  const { createWayOut } = await import('../../gateway/dial/way-out.ts');
  const upstreams = await readUpstreams(world, policy.upstreams);
  return createWayOut({ policy, upstreams, roots: trustedRoots(world), ownAddresses, granted });
}

/** For requests of our own. */
function postFor(world: World, policy: NetworkPolicy): Post {
  return async (url, body) => {
    const { createPost } = await import('../../gateway/dial/post.ts');
    const upstreams = await readUpstreams(world, policy.upstreams);
    return createPost({ policy, upstreams, roots: trustedRoots(world), ownAddresses })(url, body);
  };
}

/** Before a sandbox starts: throws what its gateway would have to say about this secret later. An expired log-in is renewed. */
export async function checkSecret(world: World, policy: NetworkPolicy, { from }: SecretRule): Promise<void> {
  const { value, renew } = await valueOf(from, world, postFor(world, policy));
  if (value === '') await renew?.();
}

async function bindSecrets(world: World, secrets: TaskSecrets, post: Post): Promise<BoundSecret[]> {
  return Promise.all(
    secrets.rules.map(async (rule) => ({
      name: rule.name,
      host: rule.host,
      port: rule.port,
      header: rule.header,
      send: rule.send,
      viaEndpoint: rule.endpoint !== null,
      placeholder: secrets.placeholders.get(rule.name) ?? '',
      ...(await valueOf(rule.from, world, post)),
    })),
  );
}

async function valueOf(
  from: SecretRule['from'],
  world: World,
  post: Post,
): Promise<Pick<BoundSecret, 'value' | 'renew'>> {
  if (!('login' in from)) return { value: await readValue(from, world) };
  const { currentToken } = await import('./token-refresh.ts');
  return { value: '', renew: () => currentToken(from, { post, now: () => world.now().getTime() }) };
}

async function readUpstreams(world: World, upstreams: readonly UpstreamProxy[]): Promise<DialUpstream[]> {
  return Promise.all(
    upstreams.map(async ({ auth, ...proxy }) => ({
      ...proxy,
      auth: auth === null ? null : await readValue(auth, world),
    })),
  );
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address));
}

function trustedRoots(world: World): () => readonly string[] {
  let roots: readonly string[] | null = null;
  return () => (roots ??= splitPem(systemBundle(world)));
}
