// config/network/text.ts: formats network values for `ags config` and for asks. Pure.
import { hostAndPort } from '../../protocol/host-name.ts';
import type { PublishedPort, TcpGrant, UpstreamProxy } from '../../protocol/network.ts';

export function formatGrant({ name, port, host, hostPort }: TcpGrant): string {
  return `${name}${port === hostPort ? '' : `:${port}`}=${hostAndPort(host, hostPort)}`;
}

export function formatPort({ inside, outside }: PublishedPort): string {
  return inside === outside ? String(inside) : `${outside}:${inside}`;
}

export function formatProxy({ kind, host, port, hosts, resolve }: UpstreamProxy): string {
  const names = resolve === 'there' ? ', which looks names up' : '';
  return `${kind}://${hostAndPort(host, port)}${hosts === null ? '' : ` for ${hosts.join(', ')}`}${names}`;
}
