// gateway/dial/dial.ts: open a connection to a host that a rule allows.
// Invariant: a name is resolved once, every address is checked, and exactly a checked address is dialled.
// The returned sockets already have an error listener, so an early error does not end the process.
import { connect, isIP, isIPv4, type Socket } from 'node:net';
import { hostAndPort } from '../../protocol/host-name.ts';
import type { UpstreamProxy } from '../../protocol/network.ts';
import type { Guard } from './address.ts';
import { race } from './race.ts';
import type { Resolved, Resolver } from './resolve.ts';
import { connectThrough } from './upstream.ts';

export interface DialTarget {
  readonly host: string;
  readonly port: number;
  readonly kind: 'name' | 'ip';
  /** The user named the address itself (an IP literal in a rule, a tcp grant), so the address guard is skipped. */
  readonly granted: boolean;
  /** A rule names the host in full (resolve.ts). */
  readonly exact?: boolean;
}

export type Dialed =
  | {
      readonly kind: 'open';
      readonly socket: Socket;
      /** The dialled address, or the name if an upstream proxy resolves it. */
      readonly address: string;
      readonly head: Buffer;
    }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      /** True: 403. False: 502, or 504 if it timed out. */
      readonly policy: boolean;
      readonly timedOut: boolean;
    };

export type DialUpstream = Omit<UpstreamProxy, 'auth' | 'origin'> & { readonly auth: string | null };

export interface Dialer {
  /** If the client disconnects, all sockets are closed. */
  dial(target: DialTarget, open: (address: string, port: number) => Socket, client?: Socket): Promise<Dialed>;
}

export function createDialer(input: {
  readonly resolver: Pick<Resolver, 'resolve'>;
  readonly guard: Guard;
  readonly upstreams: readonly DialUpstream[];
  readonly connectTimeoutMs: number;
}): Dialer {
  /** The addresses that may be dialled, or a refusal. */
  async function addressesOf(target: DialTarget): Promise<readonly string[] | Refused> {
    const resolved: Resolved =
      target.kind === 'ip'
        ? { kind: 'found', addresses: [target.host] }
        : await input.resolver.resolve(target.host, { exact: target.exact === true || target.granted });
    if (resolved.kind === 'failed')
      return { kind: 'refused', reason: resolved.reason, policy: false, timedOut: resolved.timedOut };
    if (target.granted) return inTurns(resolved.addresses);
    const judged = resolved.addresses.map((address) => ({ address, why: input.guard.refuse(address) }));
    const good = judged.filter(({ why }) => why === null).map(({ address }) => address);
    return good.length > 0 ? inTurns(good) : forbidden(target, judged[0]);
  }

  async function direct(
    target: DialTarget,
    open: (address: string, port: number) => Socket,
    client: Socket | undefined,
  ): Promise<Dialed> {
    const addresses = await addressesOf(target);
    if ('kind' in addresses) return addresses;
    const place = hostAndPort(target.host, target.port);
    const raced = await race(addresses, (address) => open(address, target.port), input.connectTimeoutMs, client);
    return raced.kind === 'open' ? { ...raced, head: NO_BYTES } : unreachable(place, raced);
  }

  async function through(upstream: DialUpstream, target: DialTarget, client: Socket | undefined): Promise<Dialed> {
    const asked = upstream.resolve === 'there' && target.kind === 'name' ? [target.host] : await addressesOf(target);
    if ('kind' in asked) return asked;
    const gone = new AbortController();
    client?.once('close', () => gone.abort());
    const signal = AbortSignal.any([AbortSignal.timeout(input.connectTimeoutMs), gone.signal]);
    let last: Refused | null = null;
    for (const host of asked.slice(0, MOST_THROUGH_PROXY)) {
      const leg = await connectToProxy(upstream, client);
      if (leg.kind === 'refused') return leg;
      const result = await connectThrough(upstream, { host, port: target.port }, () => leg.socket, signal);
      if (result.kind === 'open') return { ...result, address: host };
      last = { kind: 'refused', reason: result.reason, policy: false, timedOut: result.timedOut };
      // Repeating a rejected password can lock an account.
      if (result.fault === 'proxy') break;
    }
    return last ?? unreachable(hostAndPort(target.host, target.port), { code: 'EADDRNOTAVAIL' });
  }

  // The user configured the proxy, so it may have a private address.
  async function connectToProxy(
    upstream: DialUpstream,
    client: Socket | undefined,
  ): Promise<{ kind: 'open'; socket: Socket } | Refused> {
    const { host, port } = upstream;
    const kind = isIP(host) === 0 ? 'name' : 'ip';
    const addresses = await addressesOf({ host, port, kind, granted: true });
    if ('kind' in addresses) return addresses;
    const open = (address: string): Socket => connect({ host: address, port, allowHalfOpen: true, noDelay: true });
    const raced = await race(addresses, open, input.connectTimeoutMs, client);
    return raced.kind === 'open' ? raced : unreachable(`the proxy ${hostAndPort(host, port)}`, raced);
  }

  return {
    dial(target, open, client) {
      const upstream = isLoopback(target.host) ? undefined : input.upstreams.find((one) => serves(one, target.host));
      return upstream === undefined ? direct(target, open, client) : through(upstream, target, client);
    },
  };
}

type Refused = Extract<Dialed, { kind: 'refused' }>;

function serves(upstream: DialUpstream, host: string): boolean {
  return upstream.hosts?.some((one) => (one.startsWith('*.') ? host.endsWith(one.slice(1)) : host === one)) ?? true;
}

// For these names a proxy would reach itself.
function isLoopback(host: string): boolean {
  return (
    host === 'localhost' || host.endsWith('.localhost') || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
  );
}

function forbidden(target: DialTarget, first: { address: string; why: string | null } | undefined): Refused {
  const { address = '', why = '' } = first ?? {};
  const reason = target.kind === 'ip' ? `${address} is ${why}` : `${target.host} leads to ${address}, which is ${why}`;
  return { kind: 'refused', reason, policy: true, timedOut: false };
}

function unreachable(place: string, failed: { readonly code: string }): Refused {
  const timedOut = failed.code === 'ETIMEDOUT';
  const reason = timedOut
    ? `${place} did not answer in time`
    : failed.code === 'ECONNREFUSED'
      ? `${place} refused the connection`
      : `${place} cannot be reached (${failed.code})`;
  return { kind: 'refused', reason, policy: false, timedOut };
}

/** Alternates between IPv4 and IPv6, so a family that does not work here costs only one step. */
function inTurns(addresses: readonly string[]): readonly string[] {
  if (addresses.length === 1) return addresses;
  const four = addresses.filter((address) => isIPv4(address));
  const six = addresses.filter((address) => !isIPv4(address));
  const longest = Math.max(four.length, six.length);
  return Array.from({ length: longest }, (_, at) => [four[at], six[at]])
    .flat()
    .filter((address) => address !== undefined)
    .slice(0, MOST_ADDRESSES);
}

const NO_BYTES = Buffer.alloc(0);
const MOST_ADDRESSES = 8;
const MOST_THROUGH_PROXY = 3;
