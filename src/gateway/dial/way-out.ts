// gateway/dial/way-out.ts: connections of our own to servers outside, by the same road as those of a sandbox: the user's name servers and
// proxies, checked addresses, and for https a valid certificate.
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { hostAndPort } from '../../protocol/host-name.ts';
import type { NetworkPolicy } from '../../protocol/network.ts';
import { createGuard } from './address.ts';
import { createDialer, type Dialer, type DialUpstream } from './dial.ts';
import { createResolver } from './resolve.ts';

export interface WayOutInput {
  readonly policy: Pick<NetworkPolicy, 'dns' | 'addresses'>;
  readonly upstreams: readonly DialUpstream[];
  readonly roots: () => readonly string[];
  readonly ownAddresses: () => readonly string[];
  /** Hosts with their ports that the user has named as they are: they may well have a private address. */
  readonly granted: readonly string[];
}

export interface WayOut {
  /**
   * Rejects with a sentence. TLS speaks for itself: an error of it is one of the socket. `of` is whoever pointed there, if that was not
   * the user: only to itself, or if the user has named it as it is, may it lead to a private address.
   */
  open(url: URL, of?: URL): Promise<Socket>;
  close(): void;
}

const CONNECT_MS = 15_000;

export function createWayOut({ policy, upstreams, roots, ownAddresses, granted }: WayOutInput): WayOut {
  const resolver = createResolver({ servers: policy.dns });
  const dialerFor = (addresses: NetworkPolicy['addresses']): Dialer =>
    createDialer({
      resolver,
      guard: createGuard({ granted: addresses, ownAddresses }),
      upstreams,
      connectTimeoutMs: CONNECT_MS,
    });
  const [dialer, strangers] = [dialerFor(policy.addresses), dialerFor([])];
  const isNamed = (url: URL): boolean => {
    const { host, port } = placeOf(url);
    return granted.includes(hostAndPort(host, port));
  };
  return {
    async open(url, of = url) {
      const secure = url.protocol === 'https:';
      const { host, port } = placeOf(url);
      const kind = isIP(host) === 0 ? 'name' : 'ip';
      const itself = url.origin === of.origin;
      const by = itself || isNamed(of) ? dialer : strangers;
      const dialed = await by.dial({ host, port, kind, granted: itself && isNamed(url), exact: true }, openPlain);
      if (dialed.kind === 'refused') throw new Error(dialed.reason);
      if (!secure) return dialed.socket;
      return connect({
        socket: dialed.socket,
        servername: kind === 'name' ? host : '',
        host,
        ca: roots().length > 0 ? [...roots()] : undefined,
        minVersion: 'TLSv1.2',
        rejectUnauthorized: true,
      });
    },
    close: () => resolver.close(),
  };
}

function placeOf({ protocol, hostname, port }: URL): { host: string; port: number } {
  const usual = protocol === 'https:' ? 443 : 80;
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? usual : Number(port) };
}

function openPlain(address: string, port: number): Socket {
  return connectPlain({ host: address, port, noDelay: true });
}
