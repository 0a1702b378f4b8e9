// services/presets/connection.ts: what clients of a service get: its address and environment variables. Pure.
import type { ServiceConfig } from '../../protocol/service.ts';
import type { Connection, ServicePreset } from './preset.ts';

export function connectionOf(service: ServiceConfig, preset: ServicePreset | null): Connection {
  const [first, ...others] = preset?.ports ?? service.ports;
  const port = service.ports[0] ?? first ?? 0;
  return {
    host: service.name,
    port,
    ports: preset === null ? service.ports : [port, ...others],
    user: service.user ?? preset?.user ?? '',
    password: service.password ?? preset?.password ?? '',
    database: service.database ?? preset?.database ?? '',
  };
}

export function urlOf(to: Connection, preset: ServicePreset | null): string {
  return preset === null ? `${to.host}:${to.port}` : preset.url(to);
}

export interface Described {
  readonly service: ServiceConfig;
  readonly preset: ServicePreset | null;
  readonly to: Connection;
}

/** Variables of all services: the usual names for the first of a kind, <NAME>_URL for each, and the configured ones. */
export function environmentOf(services: readonly Described[]): Record<string, string> {
  const env: Record<string, string> = {};
  // In reverse order, so that the first of a kind overwrites the others.
  for (const { preset, to } of services.toReversed()) Object.assign(env, preset?.env(to));
  for (const { service, preset, to } of services) env[`${variableName(service.name)}_URL`] = urlOf(to, preset);
  for (const { service, preset, to } of services)
    for (const [name, text] of Object.entries(service.env)) env[name] = fill(text, to, urlOf(to, preset));
  return env;
}

function variableName(name: string): string {
  return name.toUpperCase().replaceAll('-', '_');
}

function fill(text: string, to: Connection, url: string): string {
  const values: Readonly<Record<string, string>> = {
    host: to.host,
    port: String(to.port),
    user: to.user,
    password: to.password,
    database: to.database,
    url,
  };
  return text.replaceAll(/\{([a-z]+)\}/g, (whole, name: string) => values[name] ?? whole);
}
