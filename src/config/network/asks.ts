// config/network/asks.ts: rights that a project's file requests for the network and for the user's secrets (see asks.ts).
// Invariant: a line holds the whole value; a command that would run on this machine is quoted word for word.
import { hostAndPort } from '../../protocol/host-name.ts';
import { formatRule } from '../../protocol/network-rule.ts';
import type { NetworkMode, NetworkPolicy, SecretRule } from '../../protocol/network.ts';
import { formatSize } from '../../lib/units.ts';
import { NETWORK_LIMITS } from '../defaults.ts';
import type { EffectiveConfig } from '../effective.ts';
import { originOf, type Layer } from '../file/layer.ts';
import { isAbove } from '../limits.ts';
import { DEFAULT_LIST, formatGrant, formatPort, formatProxy } from './network.ts';

export function networkAsks(project: Layer, base: EffectiveConfig, asked: EffectiveConfig): string[] {
  const [before, after] = [base.network, asked.network];
  const at = (key: string): string => originOf(project, key);
  const added = <T>(list: (policy: NetworkPolicy) => readonly T[], line: (value: T, i: number) => string): string[] => {
    const known = new Set(list(before).map(identity));
    return list(after).flatMap((value, i) => (known.has(identity(value)) ? [] : [line(value, i)]));
  };
  const listed = (key: string, i: number): string => asked.origins[`network.${key}[${i}]`] ?? project.kind;
  const named = ({ presets }: NetworkPolicy): string[] => presets.filter((name) => name !== DEFAULT_LIST);
  const defaults = after.presets.includes(DEFAULT_LIST) && !before.presets.includes(DEFAULT_LIST);
  return [
    ...(RANK.indexOf(after.mode) > RANK.indexOf(before.mode)
      ? [`${at('network.mode')}: network.mode: ${after.mode}, where you have ${before.mode}`]
      : []),
    ...(defaults ? [`${at('network.defaults')}: network.defaults: reach the built-in default list`] : []),
    ...added(named, (name, i) => `${listed('presets', i)}: network.presets: reach the built-in list "${name}"`),
    ...added(
      ({ rules }) => rules.filter(({ action }) => action === 'allow'),
      (rule) => `${rule.origin}: network.allow: reach ${formatRule(rule)}`,
    ),
    ...added(
      ({ addresses }) => addresses,
      (block, i) => `${listed('addresses', i)}: network.addresses: let names lead to ${block}`,
    ),
    ...added(
      ({ tcp }) => tcp,
      (grant) => `${grant.origin}: network.tcp: reach ${formatGrant(grant)}`,
    ),
    ...added(
      ({ publish }) => publish,
      (port, i) => `${listed('publish', i)}: network.publish: open ${formatPort(port)} on your loopback`,
    ),
    ...added(
      ({ upstreams }) => upstreams,
      (proxy) =>
        `${proxy.origin}: network.upstream: go through ${formatProxy(proxy)}${typeof proxy.auth === 'object' && proxy.auth !== null ? `, with ${formatSource(proxy.auth)}` : ''}`,
    ),
    ...added(
      ({ dns }) => dns,
      (server, i) => `${listed('dns', i)}: network.dns: ask the name server ${server}`,
    ),
    ...LIMITS.flatMap((name) =>
      isAbove(after.limits[name], before.limits[name])
        ? [
            `${at(`network.limits.${name}`)}: network.limits.${name}: use ${project.values.network?.limits?.[name]}, above your ${yours(base, name)}`,
          ]
        : [],
    ),
  ];
}

export function secretAsks(base: EffectiveConfig, asked: EffectiveConfig): string[] {
  const known = new Set(base.secrets.map(identity));
  return asked.secrets
    .filter((secret) => !known.has(identity(secret)))
    .map(
      (secret) =>
        `${secret.origin}: secrets: send ${formatSource(secret.from)} to ${hostAndPort(secret.host, secret.port)} as ${headerOf(secret)}`,
    );
}

// `record` ranks above `on`: it can reach hosts that no rule covers.
const RANK: readonly NetworkMode[] = ['off', 'on', 'record'];
const LIMITS = ['connections', 'perSecond', 'bytesOut'] as const;

/** Equal values at different positions are the same. */
function identity(value: unknown): string {
  return JSON.stringify(value, (key, inner: unknown) => (key === 'origin' ? undefined : inner));
}

function headerOf({ header, send }: SecretRule): string {
  return send === null || send === '{}' ? header : `${header}: ${send}`;
}

/** In full, because the user approves exactly this text. */
export function formatSource(source: SecretRule['from']): string {
  if (source === null) return 'nothing';
  if ('login' in source) return `your sign-in for ${source.agent}`;
  if ('env' in source) return `${source.env} of your environment`;
  if ('file' in source) return `the content of ${source.file}`;
  if ('command' in source) return `what this command prints, run on this machine: ${JSON.stringify(source.command)}`;
  return `the entry ${source.keychain} of your keychain`;
}

function yours(base: EffectiveConfig, name: (typeof LIMITS)[number]): string {
  if ((base.origins[`network.limits.${name}`] ?? 'built-in') === 'built-in') return NETWORK_LIMITS[name];
  const value = base.network.limits[name];
  return name === 'bytesOut' ? formatSize(value ?? 0) : String(value);
}
