// run/network/open-gateway.ts: assembles the gateway of a run. Loaded on the first connection to a listener.
import type { NetworkEvent } from '../../protocol/event.ts';
import { networkInterfaces } from 'node:os';
import type { Decision, NetworkPolicy, NetworkRule, SecretRule, UpstreamProxy } from '../../protocol/network.ts';
import { expandRules } from '../../config/network/presets.ts';
import type { DialUpstream } from '../../gateway/dial/dial.ts';
import { createGateway, type Gateway, type GatewayInput } from '../../gateway/gateway.ts';
import type { BoundSecret } from '../../gateway/values.ts';
import type { Post } from '../../gateway/dial/post.ts';
import type { WayOut } from '../../gateway/dial/way-out.ts';
import { readValue } from '../../gateway/values.ts';
import { findAsker } from '../../sandbox/watch/connection-owner.ts';
import { appendEvent } from '../../store/events.ts';
import { networkLogFile, openNetworkLog } from '../../store/network-log.ts';
import type { Loaded, RunNetworkInput } from './network-input.ts';
import type { TaskSecrets } from './secrets.ts';
import { splitPem, systemBundle } from './system-bundle.ts';
import type { HostContext } from '../host-context.ts';

export async function startGateway(
  input: RunNetworkInput,
  run: {
    readonly live: () => readonly NetworkRule[];
    readonly initPid: () => number | null;
    readonly onDecision: (decision: Decision) => void;
  },
): Promise<Loaded> {
  const { context } = input;
  const policy = input.config.network;
  const { events } = input;
  const emit =
    typeof events === 'string'
      ? (event: NetworkEvent) => appendEvent(events, { task: input.id, at: context.now() }, event)
      : events;
  const log = openNetworkLog(networkLogFile(context.stateDir, input.id, input.startedAtMs), {
    task: input.id,
    project: input.project,
    startedAt: new Date(input.startedAtMs).toISOString(),
  });
  const gateway = await assembleGateway(context, input.secrets, {
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
        `Network: the sandbox asks for ${host}:${port}. Allow it: ags allow ${host}${port === 443 ? '' : `:${port}`}`,
      );
    },
    who: (peerPort) => {
      const pid = run.initPid();
      return pid === null ? Promise.resolve(undefined) : findAsker(pid, peerPort);
    },
    isToken: null,
    account: input.account,
  });
  return {
    gateway,
    refresh: () => gateway.setRules(effectiveRules(policy, run.live())),
    close() {
      gateway.close();
      log.close();
      const trouble = log.trouble();
      if (trouble !== null) input.notice(`The network log could not be written (${trouble}).`);
    },
  };
}

export function effectiveRules(policy: NetworkPolicy, live: readonly NetworkRule[]): NetworkRule[] {
  return [...expandRules(policy), ...live];
}

/** Adds what every gateway takes from this machine and its user: secret values, upstream proxies, authorities, own addresses. */
export async function assembleGateway(
  context: HostContext,
  secrets: TaskSecrets,
  more: Omit<GatewayInput, 'secrets' | 'upstreams' | 'authority' | 'roots' | 'ownAddresses' | 'now'>,
): Promise<Gateway> {
  const upstreams = await readUpstreams(context, more.policy.upstreams);
  const roots = trustedRoots(context);
  return createGateway({
    ...more,
    secrets: await bindSecrets(context, secrets, postFor(context, more.policy)),
    upstreams,
    authority: secrets.authority,
    roots,
    ownAddresses,
    now: Date.now,
  });
}

/** For downloads of ags itself. */
export async function wayOut(context: HostContext, policy: NetworkPolicy, granted: readonly string[]): Promise<WayOut> {
  const { createWayOut } = await import('../../gateway/dial/way-out.ts');
  const upstreams = await readUpstreams(context, policy.upstreams);
  return createWayOut({ policy, upstreams, roots: trustedRoots(context), ownAddresses, granted });
}

/** For requests of ags itself. */
function postFor(context: HostContext, policy: NetworkPolicy): Post {
  return async (url, body) => {
    const { createPost } = await import('../../gateway/dial/post.ts');
    const upstreams = await readUpstreams(context, policy.upstreams);
    return createPost({ policy, upstreams, roots: trustedRoots(context), ownAddresses })(url, body);
  };
}

/** Before a sandbox starts: throws the error that its gateway would meet with this secret later. Renews an expired sign-in. */
export async function checkSecret(context: HostContext, policy: NetworkPolicy, secret: SecretRule): Promise<void> {
  await readSecret(context, policy, secret);
}

/** The value, renewed if it has expired; empty: there is none. For requests of ags itself. */
export async function readSecret(context: HostContext, policy: NetworkPolicy, { from }: SecretRule): Promise<string> {
  const { value, renew } = await valueOf(from, context, postFor(context, policy));
  return renew === undefined ? value : renew();
}

async function bindSecrets(context: HostContext, secrets: TaskSecrets, post: Post): Promise<BoundSecret[]> {
  return Promise.all(
    secrets.rules.map(async (rule) => ({
      name: rule.name,
      host: rule.host,
      port: rule.port,
      header: rule.header,
      send: rule.send,
      viaEndpoint: rule.endpoint !== null,
      ...(rule.own === undefined ? {} : { own: rule.own }),
      ...(rule.from === null ? { keyless: true as const } : {}),
      placeholder: secrets.placeholders.get(rule.name) ?? '',
      ...(rule.late === true && rule.from !== null
        ? readLate(rule, context, post)
        : await valueOf(rule.from, context, post, rule.own !== undefined)),
    })),
  );
}

function readLate({ from, own }: SecretRule, context: HostContext, post: Post): Pick<BoundSecret, 'value' | 'renew'> {
  let reading: Promise<Pick<BoundSecret, 'value' | 'renew'>> | null = null;
  return {
    value: '',
    async renew() {
      reading ??= valueOf(from, context, post, own !== undefined);
      try {
        const { value, renew } = await reading;
        return renew === undefined ? value : await renew();
      } catch (error) {
        reading = null;
        throw error;
      }
    },
  };
}

async function valueOf(
  from: SecretRule['from'],
  context: HostContext,
  post: Post,
  again = false,
): Promise<Pick<BoundSecret, 'value' | 'renew'>> {
  if (from === null) return { value: '' };
  if (!('login' in from)) {
    const value = await readValue(from, context);
    // Programs that print keys of clouds print short-lived ones.
    return again && 'command' in from
      ? { value: '', renew: everyFewMinutes(value, () => readValue(from, context)) }
      : { value };
  }
  const { currentToken } = await import('./token-refresh.ts');
  return { value: '', renew: () => currentToken(from, { post, now: () => context.now().getTime() }) };
}

function everyFewMinutes(first: string, read: () => Promise<string>): () => Promise<string> {
  let last = { value: Promise.resolve(first), at: performance.now() };
  return () => {
    if (performance.now() - last.at < COMMAND_AGAIN_MS) return last.value;
    last = { value: read(), at: performance.now() };
    // After a failure the next request tries again.
    last.value.catch(() => (last.at = -Infinity));
    return last.value;
  };
}

const COMMAND_AGAIN_MS = 5 * 60_000;

async function readUpstreams(context: HostContext, upstreams: readonly UpstreamProxy[]): Promise<DialUpstream[]> {
  return Promise.all(
    upstreams.map(async ({ auth, ...proxy }) => ({
      ...proxy,
      auth: auth === null ? null : await readValue(auth, context),
    })),
  );
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address));
}

function trustedRoots(context: HostContext): () => readonly string[] {
  let roots: readonly string[] | null = null;
  return () => (roots ??= splitPem(systemBundle(context)));
}
