// config/network/network.ts: merges the `network` section of all layers into one policy. Pure.
// Invariant: a value that cannot be parsed completely is refused with its position; no later layer removes a deny.
import { WORDS } from '../../protocol/config/words.ts';
import { parseRule, RULE_WORDS } from '../../protocol/network-rule.ts';
import type { NetworkLimits, NetworkPolicy, NetworkRule, TcpGrant, UpstreamProxy } from '../../protocol/network.ts';
import { parseSize } from '../../lib/units.ts';
import { NETWORK, NETWORK_LIMITS } from '../defaults.ts';
import { collect, quote, wrongValue, type Item, type Layer } from '../file/layer.ts';
import { parseBlock, parseGrant, parsePattern, parsePort, parseProxy, parseServer } from './words.ts';
import { readSource } from './secrets.ts';

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
