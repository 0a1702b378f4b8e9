// config/agents.ts: merges the `agents` of all layers: each agent's model endpoint, its model, and the user's settings it sees. Pure.
// Invariants: a key goes only to the URL that the same file gives beside it, so a project's file can never send a key of the user's
// file elsewhere. Without TLS, an endpoint is on this machine.
import { normalize } from 'node:path';
import { isWithin } from '../lib/files.ts';
import { canonicalHost, hostAndPort, hostInUrl } from '../protocol/host-name.ts';
import type { ModelEndpoint } from '../protocol/network.ts';
import type { AgentSettings } from './effective.ts';
import { originOf, quote, wrongValue, type Layer } from './file/layer.ts';
import { FRAMING, readSource } from './network/secrets.ts';

type Written = NonNullable<NonNullable<Layer['values']['agents']>['claude']>;

export function mergeAgents(
  layers: readonly Layer[],
  home: string,
  origins: Record<string, string>,
): Readonly<Record<string, AgentSettings>> {
  const merged: Record<string, AgentSettings> = {};
  for (const layer of layers)
    for (const [name, values] of Object.entries(layer.values.agents ?? {})) {
      const before = merged[name] ?? NONE;
      const key = `agents.${name}`;
      if (values.url === undefined) refuseLone(layer, key, values);
      else origins[`${key}.url`] = originOf(layer, `${key}.url`);
      if (values.model !== undefined) origins[`${key}.model`] = originOf(layer, `${key}.model`);
      merged[name] = {
        endpoint: values.url === undefined ? before.endpoint : endpointOf(layer, key, values.url, values, home),
        model: values.model ?? before.model,
        settings: [...before.settings, ...settingsOf(layer, key, values.settings ?? [], home, before.settings)],
      };
    }
  return merged;
}

const NONE: AgentSettings = { endpoint: null, model: null, settings: [] };

function settingsOf(
  layer: Layer,
  key: string,
  written: readonly string[],
  home: string,
  before: AgentSettings['settings'],
): AgentSettings['settings'] {
  const paths = written.map((text, i) => {
    const path = normalize(text.startsWith('~/') ? `${home}/${text.slice(2)}` : text).replace(/\/$/, '');
    if (path === home || !isWithin(path, home))
      throw wrongValue(layer, `${key}.settings[${i}]`, `${quote(text)} is not below your home`);
    return { path: path.slice(home.length + 1), origin: originOf(layer, `${key}.settings[${i}]`) };
  });
  const known = before.map(({ path }) => path);
  return paths.filter(({ path }, i) => !known.includes(path) && paths.findIndex((one) => one.path === path) === i);
}

function refuseLone(layer: Layer, key: string, values: Written): void {
  const lone = (['key', 'header'] as const).find((name) => values[name] !== undefined);
  if (lone === undefined) return;
  const name = key.slice(key.indexOf('.') + 1);
  throw wrongValue(
    layer,
    `${key}.${lone}`,
    'it belongs to a "url" in the same file',
    `Give the url beside it. To sign in at the usual provider: ags auth ${name}`,
  );
}

function endpointOf(
  layer: Layer,
  key: string,
  text: string,
  { key: from, header }: Written,
  home: string,
): ModelEndpoint {
  const refuse = (problem: string, hint?: string): never => {
    throw wrongValue(layer, `${key}.url`, `${quote(text)}: ${problem}`, hint);
  };
  // The text has passed the schema: it has a scheme and no blanks.
  if (!URL.canParse(text)) return refuse('it is not a URL');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '')
    return refuse('a key does not belong into a URL', 'Use "key", or: ags auth <agent>');
  if (url.search !== '' || url.hash !== '') return refuse('a base URL has neither "?" nor "#"');
  const name = canonicalHost(url.hostname);
  if (name === null) return refuse('its host is neither a name nor an address');
  const tls = url.protocol === 'https:';
  if (!tls && !isLoopback(name.host))
    return refuse(
      'without TLS, everyone on the way could read the key and your code; http:// is only for this machine',
      'Use https://. For a server in your network without TLS, forward a port of this machine to it: ssh -L 11434:localhost:11434 <server>, and use http://localhost:11434',
    );
  const path = url.pathname.replace(/\/+$/, '');
  if (!PATH.test(path)) return refuse('its path has characters or parts that servers read in different ways');
  const lower = header?.toLowerCase() ?? null;
  if (lower !== null && FRAMING.has(lower))
    throw wrongValue(layer, `${key}.header`, `${quote(lower)} is a header of the connection and cannot carry a key`);
  const port = url.port === '' ? (tls ? 443 : 80) : Number(url.port);
  const place = port === (tls ? 443 : 80) ? hostInUrl(name.host) : hostAndPort(name.host, port);
  return {
    url: `${url.protocol}//${place}${path}`,
    tls,
    host: name.host,
    port,
    path,
    key: from === undefined ? null : readSource(from, layer, `${key}.key`, home),
    header: lower,
    origin: originOf(layer, `${key}.url`),
  };
}

/** Empty, or parts of plain characters: the gateway holds requests below it. */
const PATH = /^(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$/;

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}
