// gateway/dial/way-out.ts: connections of ags itself to servers outside, under the same conditions as a sandbox's
// connections: the user's name servers and proxies, checked addresses, and for https a valid certificate.
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { hostAndPort } from '../../protocol/host-name.ts';
import type { NetworkPolicy } from '../../protocol/network.ts';
import { createGuard, isLoopback } from './address.ts';
import { createDialer, type Dialer, type DialUpstream } from './dial.ts';
import { createResolver } from './resolve.ts';

export interface WayOutInput {
  readonly policy: Pick<NetworkPolicy, 'dns' | 'addresses'>;
  readonly upstreams: readonly DialUpstream[];
  readonly roots: () => readonly string[];
  readonly ownAddresses: () => readonly string[];
  /** `host:port` of servers that the user named: they may have a private address. */
  readonly granted: readonly string[];
}

export interface WayOut {
  /**
   * Rejects with a sentence; a TLS failure is an error of the returned socket. `of` is the server that referred to `url`, if the
   * user did not: it may lead to a private address only on itself, or if the user named it.
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
  const [dialer, publicDialer] = [dialerFor(policy.addresses), dialerFor([])];
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
      const by = itself || isNamed(of) ? dialer : publicDialer;
      const dialed = await by.dial({ host, port, kind, granted: itself && isNamed(url), exact: true }, openPlain);
      if (dialed.kind === 'refused') throw new Error(dialed.reason);
      if (!secure && host === 'localhost' && !isLoopback(dialed.address)) {
        dialed.socket.destroy();
        throw new Error(`localhost leads to ${dialed.address}`);
      }
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
