// config/services.ts: merges the `services` of all layers. Pure: programs are looked for only when they are to run.
// Invariant: services together never get more memory than the limit of their sandbox, which a project cannot raise by itself.
import type { NetworkPolicy } from '../protocol/network.ts';
import { AgsError } from '../protocol/errors.ts';
import type { ServiceConfig } from '../protocol/service.ts';
import type { Limits } from '../protocol/spec.ts';
import { formatSize, parseDuration, parseSize } from '../lib/units.ts';
import { SERVICE_MEMORY, SERVICE_TIMEOUT } from './defaults.ts';
import { originOf, quote, wrongValue, type Layer } from './file/layer.ts';
import { suggest } from './file/suggest.ts';

type Written = NonNullable<Layer['values']['services']>[string];

interface Merged {
  readonly values: Written;
  /** The layer that defines it. */
  readonly layer: Layer;
}

export function mergeServices(
  layers: readonly Layer[],
  limits: Limits,
  network: NetworkPolicy,
  origins: Record<string, string>,
): readonly ServiceConfig[] {
  if (layers.every(({ values }) => values.services === undefined)) return NONE;
  const merged = new Map<string, Merged>();
  for (const layer of layers)
    for (const [name, values] of Object.entries(layer.values.services ?? {})) {
      const before = merged.get(name);
      // A layer with a preset or a command replaces the whole service; other layers change single keys.
      const whole = before === undefined || values.preset !== undefined || values.run !== undefined;
      if (values.preset === 'none') merged.delete(name);
      else merged.set(name, whole ? { values, layer } : { values: { ...before.values, ...values }, layer });
    }
  if (merged.size > MOST)
    throw new AgsError('config.invalid', `There are ${merged.size} services; at most ${MOST} are allowed.`);
  const share = shareOf([...merged.values()], limits);
  const services = [...merged].map(([name, one]) => {
    const service = serviceOf(name, one, limits, share);
    origins[`services.${name}`] = service.origin;
    if (network.tcp.some((grant) => grant.name === name))
      throw wrongValue(one.layer, `services.${name}`, 'a grant in network.tcp already has this name');
    return service;
  });
  if (sum(services.map(({ memoryBytes }) => memoryBytes)) > limits.memoryBytes)
    throw new AgsError(
      'config.invalid',
      `The ${services.length} services together need more memory than the sandbox may use (limits.memory: ${formatSize(limits.memoryBytes)}).`,
      { hint: 'Lower services.<name>.memory, or raise limits.memory in your own config.yaml.' },
    );
  return services;
}

const NONE: readonly ServiceConfig[] = [];
const MOST = 16;
const LEAST_MEMORY = 16 * 2 ** 20;

function serviceOf(name: string, { values, layer }: Merged, limits: Limits, share: number): ServiceConfig {
  const key = `services.${name}`;
  const refuse = (what: string, problem: string, hint?: string): never => {
    throw wrongValue(layer, what === '' ? key : `${key}.${what}`, problem, hint);
  };
  const own = values.run !== undefined || (values.image !== undefined && values.preset === undefined);
  if ((values.preset !== undefined && values.run !== undefined) || (values.preset === undefined && !own))
    refuse('', 'expected either a preset, or run, or an image', `For example: services: { ${name}: postgres }`);
  if (values.scratch !== undefined && values.image === undefined)
    refuse('scratch', 'only a service with an image has such directories');
  if (own && values.ports === undefined && values.port === undefined)
    refuse(values.run === undefined ? 'image' : 'run', 'its ports are missing', 'For example: ports: [8080]');
  if (values.preset !== undefined && values.ports !== undefined)
    refuse('ports', 'a preset has its own ports; to change the first, use port');
  const ports = values.ports ?? (values.port === undefined ? [] : [values.port]);
  if (new Set(ports).size !== ports.length) refuse('ports', 'a port is listed twice');
  if (values.ready?.port !== undefined && values.ready.command !== undefined)
    refuse('ready', 'expected either port or command');
  return {
    name,
    preset: values.preset === 'none' ? null : (values.preset ?? null),
    image: values.image ?? null,
    environment: values.environment ?? {},
    scratch: values.scratch ?? [],
    run: values.run ?? null,
    version: values.version ?? null,
    database: values.database ?? null,
    user: values.user ?? null,
    password: values.password ?? null,
    ports,
    seed: values.seed ?? [],
    env: values.env ?? {},
    ready: {
      port: values.ready?.port ?? null,
      command: values.ready?.command ?? null,
      timeoutSeconds: parseDuration(values.ready?.timeout ?? SERVICE_TIMEOUT) ?? 60,
    },
    memoryBytes: memoryOf(values, limits, share, (problem) => refuse('memory', problem)),
    origin: originOf(layer, key),
  };
}

/** The memory of a service without a limit of its own: an even share of what the others leave. */
function shareOf(all: readonly Merged[], limits: Limits): number {
  const said = all.flatMap(({ values }) =>
    values.memory === undefined ? [] : (parseSize(String(values.memory)) ?? 0),
  );
  const left = limits.memoryBytes - sum(said);
  const even = Math.floor(left / Math.max(1, all.length - said.length));
  return Math.max(LEAST_MEMORY, Math.min(parseSize(SERVICE_MEMORY) ?? 0, even));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

function memoryOf({ memory }: Written, limits: Limits, share: number, refuse: (problem: string) => never): number {
  if (memory === undefined) return share;
  const bytes = parseSize(String(memory)) ?? 0;
  if (bytes < LEAST_MEMORY) refuse(`${quote(memory)} is too little; the minimum is ${formatSize(LEAST_MEMORY)}`);
  if (bytes > limits.memoryBytes)
    refuse(`${quote(memory)} is more than the sandbox may use (limits.memory: ${formatSize(limits.memoryBytes)})`);
  return bytes;
}

/** The services that remain after the flags are applied. */
export function chooseServices(
  services: readonly ServiceConfig[],
  chosen: readonly string[] | undefined,
): readonly ServiceConfig[] {
  if (chosen === undefined) return services;
  const names = services.map(({ name }) => name);
  for (const name of chosen)
    if (!names.includes(name)) {
      const near = suggest(name, names);
      throw new AgsError('usage.invalid', `There is no service "${name}".`, {
        hint:
          names.length === 0
            ? 'Add it to ags.yaml: services: { db: postgres }'
            : near === undefined
              ? `Configured services: ${names.join(', ')}.`
              : `Did you mean ${near}?`,
      });
    }
  return services.filter(({ name }) => chosen.includes(name));
}
