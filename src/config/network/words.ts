// config/network/words.ts: parses single values of the `network` section. Pure.
// Invariant: one text has one meaning; an ambiguous text is refused.
import { canonicalHost, hostAndPort, readBareHost } from '../../protocol/host-name.ts';
import { parsePlace } from '../../protocol/network-rule.ts';
import type { PublishedPort, TcpGrant, UpstreamProxy } from '../../protocol/network.ts';

interface Problem {
  readonly problem: string;
}

/** `db=localhost:5432`, `cache:6380=10.0.0.5:6379`. */
export function parseGrant(text: string): Omit<TcpGrant, 'origin'> | Problem {
  const [left = '', right, ...more] = text.split('=');
  if (right === undefined || more.length > 0) return { problem: 'it has no "=" between name and target' };
  const inside = parsePlace(left);
  if ('problem' in inside) return inside;
  const name = canonicalHost(inside.host);
  if (name?.kind !== 'name') return { problem: `${left} is not one name` };
  // Programs inside use this name for each other.
  if (/^(.*\.)?localhost$/.test(name.host)) return { problem: 'localhost is the sandbox itself' };
  const outside = parseServerName(right);
  if ('problem' in outside) return outside;
  return { name: name.host, port: inside.port ?? outside.port, host: outside.host, hostPort: outside.port };
}

/** `3000`, `8080:3000`. */
export function parsePort(value: number | string): PublishedPort | Problem {
  const match = /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(String(value));
  if (match === null) return { problem: 'it is not a port' };
  const inside = Number(match[2]);
  const outside = Number(match[1] ?? match[2]);
  const wrong = [outside, inside].find((port) => port < 1 || port > 65_535);
  return wrong === undefined ? { inside, outside } : { problem: `${wrong} is not a port` };
}

/** `10.1.0.0/16`, `fd00::/8`, or one address. */
export function parseBlock(text: string): string | Problem {
  const match = /^([0-9a-fA-F:.]+)(?:\/(\d{1,3}))?$/.exec(text);
  const address = match?.[1] ?? '';
  const host = readBareHost(address);
  if (host?.kind !== 'ip') return { problem: 'it is not an address with a prefix length' };
  const { value, bits } = bitsOf(host.host);
  const length = match?.[2] === undefined ? bits : Number(match[2]);
  if (length > bits) return { problem: `/${length} is longer than the address` };
  // All private blocks fit in these. A wider one would include this machine and its neighbours by mistake.
  const least = bits === 32 ? 8 : 7;
  if (length < least) return { problem: `/${length} is too wide; the widest is /${least}` };
  if ((value & ((1n << BigInt(bits - length)) - 1n)) !== 0n)
    return { problem: `it has bits set beyond its prefix of /${length}` };
  return `${host.host}/${length}`;
}

/** `127.0.0.1:53`, `[::1]:53`, or without the port. */
export function parseServer(text: string): string | Problem {
  const bare = readBareHost(text);
  const place = bare?.kind === 'ip' ? { host: bare.host, port: null } : parsePlace(text);
  if ('problem' in place) return place;
  if (readBareHost(place.host)?.kind !== 'ip') return { problem: 'it is not an address' };
  return hostAndPort(place.host, place.port ?? 53);
}

export function parseProxy(text: string): Pick<UpstreamProxy, 'kind' | 'host' | 'port'> | Problem {
  const match = /^(http|socks5):\/\/([^/]*)\/?$/.exec(text);
  if (match === null) return { problem: 'it does not begin with http:// or socks5://' };
  const [, kind, place = ''] = match;
  if (place.includes('@')) return { problem: 'it must not contain a password; use "auth"' };
  const server = parseServerName(place);
  return 'problem' in server ? server : { kind: kind === 'http' ? 'http' : 'socks5', ...server };
}

/** A host, or `*.corp`. It selects a proxy and grants nothing, so one part after the star is enough. */
export function parsePattern(text: string): string | Problem {
  const star = text.startsWith('*.');
  const host = canonicalHost(star ? text.slice(2) : text);
  if (host === null || (star && host.kind === 'ip')) return { problem: 'it is not a host' };
  return star ? `*.${host.host}` : host.host;
}

/** One host with its port. */
function parseServerName(text: string): { host: string; port: number } | Problem {
  const place = parsePlace(text);
  if ('problem' in place) return place;
  if (place.host.startsWith('*.')) return { problem: `${text} is more than one host` };
  return place.port === null ? { problem: `${text} has no port` } : { host: place.host, port: place.port };
}

/** The bits of an address in canonical form. */
function bitsOf(address: string): { value: bigint; bits: 32 | 128 } {
  if (!address.includes(':'))
    return { value: address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n), bits: 32 };
  const [before = [], after] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = after === undefined ? 0 : 8 - before.length - after.length;
  const groups = [...before, ...Array<string>(zeros).fill('0'), ...(after ?? [])];
  return { value: groups.reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n), bits: 128 };
}
