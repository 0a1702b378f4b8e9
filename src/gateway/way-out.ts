// gateway/way-out.ts: connections of our own to servers outside, by the same road as those of a sandbox: the user's name servers and
// proxies, checked addresses, and for https a valid certificate.
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { hostAndPort } from '../protocol/host-name.ts';
import type { NetworkPolicy } from '../protocol/network.ts';
import { createGuard } from './address.ts';
import { createDialer, type DialUpstream } from './dial.ts';
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
  /** Rejects with a sentence. TLS speaks for itself: an error of it is one of the socket. */
  open(url: URL): Promise<Socket>;
  close(): void;
}

const CONNECT_MS = 15_000;

export function createWayOut({ policy, upstreams, roots, ownAddresses, granted }: WayOutInput): WayOut {
  const resolver = createResolver({ servers: policy.dns });
  const guard = createGuard({ granted: policy.addresses, ownAddresses });
  const dialer = createDialer({ resolver, guard, upstreams, connectTimeoutMs: CONNECT_MS });
  return {
    async open(url) {
      const secure = url.protocol === 'https:';
      const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
      const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
      const kind = isIP(host) === 0 ? 'name' : 'ip';
      const named = granted.includes(hostAndPort(host, port));
      const dialed = await dialer.dial({ host, port, kind, granted: named, exact: true }, openPlain);
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

function openPlain(address: string, port: number): Socket {
  return connectPlain({ host: address, port, noDelay: true });
}
