// config/network/network.ts: parses the `network` section, merges all layers into one policy and formats its values. Pure.
// Invariant: a value that cannot be parsed completely is refused with its position; no later layer removes a deny.
// One text has one meaning; an ambiguous text is refused.
import { WORDS } from '../../protocol/config/words.ts';
import { parseRule, RULE_WORDS, parsePlace } from '../../protocol/network-rule.ts';
import type {
  NetworkLimits,
  NetworkPolicy,
  NetworkRule,
  TcpGrant,
  UpstreamProxy,
  PublishedPort,
} from '../../protocol/network.ts';
import { parseSize } from '../../lib/units.ts';
import { NETWORK, NETWORK_LIMITS } from '../defaults.ts';
import { collect, quote, wrongValue, type Item, type Layer } from '../file/layer.ts';
import { readSource } from './secrets.ts';
import { canonicalHost, hostAndPort, readBareHost } from '../../protocol/host-name.ts';

/** Stands for all built-in lists that are on by default. */
export const DEFAULT_LIST = 'default';

/** The policy if no layer has a `network` section. It notes no origins, because all values are built-in. */
const UNTOUCHED: NetworkPolicy = {
  mode: NETWORK.mode,
  presets: [DEFAULT_LIST],
  rules: [],
  addresses: [],
  tcp: [],
  publish: [],
  upstreams: [],
  dns: [],
  limits: {
    connections: Number(NETWORK_LIMITS.connections),
    perSecond: Number(NETWORK_LIMITS.perSecond),
    bytesOut: parseSize(NETWORK_LIMITS.bytesOut) ?? 0,
  },
  askSeconds: NETWORK.askSeconds,
};

type Values = Layer['values'];
/** The value of the last layer that sets the key; notes its origin. */
type Last = <T>(key: string, builtIn: T, pick: (values: Values) => T | undefined) => T;

export function mergeNetwork(
  layers: readonly Layer[],
  home: string,
  last: Last,
  origins: Record<string, string>,
): NetworkPolicy {
  // Most commands configure no network, and each starts a sandbox within a few milliseconds.
  if (layers.every(({ values }) => values.network === undefined)) return UNTOUCHED;
  const list = <T, P>(
    key: string,
    pick: (values: Values) => readonly T[] | undefined,
    parse: (value: T) => P,
    what: string,
  ): Meaning<P>[] => {
    const parsed = unique(collect(layers, key, pick).map((item) => ({ ...item, value: read(item, parse, what) })));
    for (const [i, { origin }] of parsed.entries()) origins[`${key}[${i}]`] = origin;
    return parsed.map(({ value }) => value);
  };
  const defaults = last<boolean>('network.defaults', NETWORK.defaults, (v) => v.network?.defaults);
  const presets = list('network.presets', (v) => v.network?.presets, String, '');
  return {
    mode: last<NetworkPolicy['mode']>('network.mode', NETWORK.mode, (v) => v.network?.mode),
    presets: defaults ? [DEFAULT_LIST, ...presets] : presets,
    rules: [...rulesOf(layers, 'allow'), ...rulesOf(layers, 'deny')],
    addresses: list('network.addresses', (v) => v.network?.addresses, parseBlock, WORDS.block),
    tcp: grantsOf(layers),
    publish: list('network.publish', (v) => v.network?.publish, parsePort, WORDS.port),
    upstreams: collect(layers, 'network.upstream', (v) => v.network?.upstream).map((item) => upstreamOf(item, home)),
    dns: list('network.dns', (v) => v.network?.dns, parseServer, WORDS.server),
    limits: limitsOf(layers, last),
    askSeconds: last<number>('network.askSeconds', NETWORK.askSeconds, (v) => v.network?.askSeconds),
  };
}

type Meaning<P> = Exclude<P, { readonly problem: string }>;

/** The parsed value, or an error with its position and the expected form. */
function read<T, P>(item: Item<T>, parse: (value: T) => P, what: string): Meaning<P> {
  const parsed = parse(item.value);
  if (!isProblem(parsed)) return parsed as Meaning<P>;
  throw wrongValue(item.layer, item.key, `${quote(item.value)}: ${parsed.problem}`, `Expected: ${what}.`);
}

function isProblem(value: unknown): value is { problem: string } {
  return typeof value === 'object' && value !== null && 'problem' in value;
}

/** Keeps the first of equal items. */
function unique<T>(items: readonly Item<T>[]): Item<T>[] {
  const seen = new Map(items.toReversed().map((item) => [JSON.stringify(item.value), item]));
  return items.filter((item) => seen.get(JSON.stringify(item.value)) === item);
}

function rulesOf(layers: readonly Layer[], action: NetworkRule['action']): NetworkRule[] {
  const items = collect(layers, `network.${action}`, (v) => v.network?.[action]);
  return unique(items.map((item) => ({ ...item, value: read(item, parseRule, RULE_WORDS) }))).map(
    ({ value, origin }) => ({ action, ...value, origin }),
  );
}

function grantsOf(layers: readonly Layer[]): TcpGrant[] {
  const items = unique(
    collect(layers, 'network.tcp', (v) => v.network?.tcp).map((item) => ({
      ...item,
      value: read(item, parseGrant, WORDS.grant),
    })),
  );
  for (const [i, { value, layer, key }] of items.entries()) {
    const first = items.slice(0, i).find((other) => other.value.name === value.name);
    if (first !== undefined)
      throw wrongValue(
        layer,
        key,
        `${quote(value.name)} is already granted at ${first.origin}`,
        'Give one of the two another name.',
      );
  }
  return items.map(({ value, origin }) => ({ ...value, origin }));
}

function upstreamOf(
  { value, layer, key, origin }: Item<NonNullable<NonNullable<Values['network']>['upstream']>[number]>,
  home: string,
): UpstreamProxy {
  const proxy = parseProxy(value.proxy);
  if ('problem' in proxy)
    throw wrongValue(layer, `${key}.proxy`, `${quote(value.proxy)}: ${proxy.problem}`, `Expected: ${WORDS.proxy}.`);
  const hosts = value.hosts?.map((text, i) => {
    const host = parsePattern(text);
    if (typeof host === 'string') return host;
    throw wrongValue(layer, `${key}.hosts[${i}]`, `${quote(text)}: ${host.problem}`, 'Expected: a host, or *.corp.');
  });
  return {
    ...proxy,
    auth: value.auth === undefined ? null : readSource(value.auth, layer, `${key}.auth`, home),
    hosts: hosts ?? null,
    resolve: value.resolve ?? 'here',
    origin,
  };
}

function limitsOf(layers: readonly Layer[], last: Last): NetworkLimits {
  const of = (name: keyof typeof NETWORK_LIMITS): string =>
    String(last<string | number>(`network.limits.${name}`, NETWORK_LIMITS[name], (v) => v.network?.limits?.[name]));
  const bytesOut = of('bytesOut');
  const parsed = bytesOut === 'none' ? null : parseSize(bytesOut);
  if (parsed === undefined || (parsed !== null && parsed < LEAST_BYTES)) {
    const layer = layers.findLast(({ values }) => values.network?.limits?.bytesOut !== undefined);
    if (layer !== undefined)
      throw wrongValue(
        layer,
        'network.limits.bytesOut',
        parsed === undefined
          ? `expected ${WORDS.sizeOrNone}, found ${quote(bytesOut)}`
          : `${quote(bytesOut)} is too little for one request; the minimum is 64k`,
      );
  }
  return { connections: Number(of('connections')), perSecond: Number(of('perSecond')), bytesOut: parsed ?? null };
}

const LEAST_BYTES = 64 * 1024;

interface Problem {
  readonly problem: string;
}

/** `db=localhost:5432`, `cache:6380=10.0.0.5:6379`. */
function parseGrant(text: string): Omit<TcpGrant, 'origin'> | Problem {
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
function parsePort(value: number | string): PublishedPort | Problem {
  const match = /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(String(value));
  if (match === null) return { problem: 'it is not a port' };
  const inside = Number(match[2]);
  const outside = Number(match[1] ?? match[2]);
  const wrong = [outside, inside].find((port) => port < 1 || port > 65_535);
  return wrong === undefined ? { inside, outside } : { problem: `${wrong} is not a port` };
}

/** `10.1.0.0/16`, `fd00::/8`, or one address. */
function parseBlock(text: string): string | Problem {
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
function parseServer(text: string): string | Problem {
  const bare = readBareHost(text);
  const place = bare?.kind === 'ip' ? { host: bare.host, port: null } : parsePlace(text);
  if ('problem' in place) return place;
  if (readBareHost(place.host)?.kind !== 'ip') return { problem: 'it is not an address' };
  return hostAndPort(place.host, place.port ?? 53);
}

function parseProxy(text: string): Pick<UpstreamProxy, 'kind' | 'host' | 'port'> | Problem {
  const match = /^(http|socks5):\/\/([^/]*)\/?$/.exec(text);
  if (match === null) return { problem: 'it does not begin with http:// or socks5://' };
  const [, kind, place = ''] = match;
  if (place.includes('@')) return { problem: 'it must not contain a password; use "auth"' };
  const server = parseServerName(place);
  return 'problem' in server ? server : { kind: kind === 'http' ? 'http' : 'socks5', ...server };
}

/** A host, or `*.corp`. It selects a proxy and grants nothing, so one part after the star is enough. */
function parsePattern(text: string): string | Problem {
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
