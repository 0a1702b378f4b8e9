// config/network/secrets.ts: merges the `secrets` of all layers. Pure: it reads sources, never values.
// Invariant: a secret goes to one host in one header; two secrets with the same name or variable are an error.
import { parsePlace } from '../../protocol/network-rule.ts';
import type { SecretRule, ValueSource } from '../../protocol/network.ts';
import { collect, quote, wrongValue, type Item, type Layer } from '../file/layer.ts';

type Written = NonNullable<Layer['values']['secrets']>[number];

export function mergeSecrets(layers: readonly Layer[], home: string): SecretRule[] {
  const items = collect(layers, 'secrets', (v) => v.secrets).map((item) => ({ ...item, value: ruleOf(item, home) }));
  const first = items.filter((item, i) => !items.slice(0, i).some((other) => isSame(other.value, item.value)));
  for (const [i, item] of first.entries()) refuseSecond(item, first.slice(0, i));
  return first.map(({ value }) => value);
}

function isSame(a: SecretRule, b: SecretRule): boolean {
  return JSON.stringify({ ...a, origin: '' }) === JSON.stringify({ ...b, origin: '' });
}

function ruleOf({ value, layer, key, origin }: Item<Written>, home: string): SecretRule {
  const place = parsePlace(value.host);
  if ('problem' in place || place.host.startsWith('*.'))
    throw wrongValue(
      layer,
      `${key}.host`,
      `${quote(value.host)}: ${'problem' in place ? place.problem : 'a secret is for one host'}`,
      'Expected: one host, such as api.github.com.',
    );
  const header = (value.header ?? 'authorization').toLowerCase();
  if (FRAMING.has(header))
    throw wrongValue(
      layer,
      `${key}.header`,
      `${quote(header)} is a header of the connection and cannot carry a secret`,
    );
  if (value.env === undefined && value.send === undefined)
    throw wrongValue(
      layer,
      key,
      'it is never used: it has neither "env" nor "send"',
      'With "env", a variable inside holds a placeholder; with "send", the header is set on every request.',
    );
  return {
    name: value.name,
    from: readSource(value.from, layer, `${key}.from`, home),
    host: place.host,
    port: place.port ?? 443,
    header,
    send: value.send ?? null,
    env: value.env ?? null,
    endpoint: value.endpoint ?? null,
    origin,
  };
}

/** Exactly one source; `~/` is the home. */
export function readSource(written: Written['from'], layer: Layer, key: string, home: string): ValueSource {
  const given = Object.keys(written);
  if (given.length !== 1)
    throw wrongValue(
      layer,
      key,
      given.length === 0 ? 'it has no source for the value' : `${given.join(' and ')} exclude each other`,
      'Expected: one of { env: NAME }, { file: path }, { command: [program, argument] }, { keychain: service/account }.',
    );
  if (written.env !== undefined) return { env: written.env };
  if (written.file !== undefined)
    return { file: written.file.startsWith('~/') ? `${home}/${written.file.slice(2)}` : written.file };
  if (written.command !== undefined) return { command: written.command };
  return { keychain: written.keychain ?? '' };
}

function refuseSecond({ value, layer, key }: Item<SecretRule>, before: readonly Item<SecretRule>[]): void {
  const second = (what: 'name' | 'variable', name: string, first: Item<SecretRule>): Error =>
    wrongValue(
      layer,
      key,
      `another secret ${what === 'name' ? 'is named' : 'uses the variable'} ${quote(name)}, at ${first.origin}`,
      'Give one of the two another name.',
    );
  const named = before.find((other) => other.value.name === value.name);
  if (named !== undefined) throw second('name', value.name, named);
  if (value.env !== null && value.env === value.endpoint)
    throw wrongValue(layer, key, `${quote(value.env)} cannot hold both the placeholder and the URL`);
  for (const variable of [value.env, value.endpoint].filter((name) => name !== null)) {
    const first = before.find((other) => other.value.env === variable || other.value.endpoint === variable);
    if (first !== undefined) throw second('variable', variable, first);
  }
}

/** Values in these headers would change where a request ends or goes. */
export const FRAMING = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'keep-alive',
  'proxy-connection',
]);
