// config/merge.ts: layers in, one effective configuration out. Pure. Later layers win: single values replace, lists append.
// Invariant: every value in the result has been checked, and `origins` has an entry for each of them.
import { join, normalize } from 'node:path';
import type { KernelRules, Limits } from '../protocol/spec.ts';
import { ENV_PASS, ETC, HIDE, KERNEL, LIMITS, PATH_ENV, PLACES, TOOL_DIRS, USER, WORKSPACE } from './defaults.ts';
import type { EffectiveConfig, ExtraMount } from './effective.ts';
import { originOf, quote, wrongValue, type Layer } from './layer.ts';
import { LIMIT_KINDS, LIMIT_NAMES } from './limits.ts';
import { patternProblem } from './patterns.ts';
import { forbiddenPlace, holdsOwnFiles, isWithin, type Places } from './places.ts';

export interface World extends Places {
  readonly memoryTotalBytes: number;
}

export function mergeLayers(layers: readonly Layer[], world: World, files: readonly string[] = []): EffectiveConfig {
  const origins: Record<string, string> = {};
  const last = <T>(key: string, builtIn: T, pick: (values: Layer['values']) => T | undefined): T => {
    const layer = layers.findLast(({ values }) => pick(values) !== undefined);
    origins[key] = layer ? originOf(layer, key) : BUILT_IN;
    return (layer && pick(layer.values)) ?? builtIn;
  };
  const all = (key: string, builtIn: readonly string[], pick: (values: Layer['values']) => readonly string[] | undefined): string[] =>
    named(key, [...builtIn.map(fromBuiltIn), ...collect(layers, key, pick)], origins);

  const toolDefaults = last('tools.defaults', true, (v) => v.tools?.defaults);
  const kernel: KernelRules = {
    ptrace: last('kernel.ptrace', KERNEL.ptrace, (v) => v.kernel?.ptrace),
    unixSockets: last('kernel.unixSockets', KERNEL.unixSockets, (v) => v.kernel?.unixSockets),
  };
  for (const [key, pick] of Object.entries(PATTERN_LISTS)) checkPatterns(layers, key, pick);

  return {
    user: last('user', USER, (v) => v.user),
    workspace: last('workspace', WORKSPACE, (v) => v.workspace),
    toolDefaults,
    toolDirs: mergeTools(layers, world, origins, toolDefaults),
    mounts: mergeMounts(layers, world, origins),
    etc: all('etc', ETC, (v) => v.etc),
    envPass: all('env.pass', ENV_PASS, (v) => v.env?.pass),
    pathEnv: PATH_ENV,
    envSet: mergeEnvSet(layers, origins),
    hide: all('hide', HIDE, PATTERN_LISTS.hide),
    reveal: all('reveal', [], PATTERN_LISTS.reveal),
    limits: mergeLimits(layers, world, origins),
    kernel,
    risky: all('review.risky', [], PATTERN_LISTS['review.risky']),
    origins,
    files,
  };
}

const BUILT_IN = 'built-in';

const PATTERN_LISTS = {
  hide: (v: Layer['values']) => v.hide,
  reveal: (v: Layer['values']) => v.reveal,
  'review.risky': (v: Layer['values']) => v.review?.risky,
};

interface Item {
  readonly value: string;
  readonly origin: string;
  readonly layer?: Layer;
  readonly key?: string;
}

function fromBuiltIn(value: string): Item {
  return { value, origin: BUILT_IN };
}

function collect(layers: readonly Layer[], key: string, pick: (values: Layer['values']) => readonly string[] | undefined): Item[] {
  return layers.flatMap((layer) =>
    (pick(layer.values) ?? []).map((value, i) => ({ value, origin: originOf(layer, `${key}[${i}]`), layer, key: `${key}[${i}]` })),
  );
}

/** The values without repetitions, their origins noted by their place in the result. */
function named(key: string, items: readonly Item[], origins: Record<string, string>): string[] {
  const seen = new Map<string, string>();
  for (const { value, origin } of items) if (!seen.has(value)) seen.set(value, origin);
  for (const [i, origin] of [...seen.values()].entries()) origins[`${key}[${i}]`] = origin;
  return [...seen.keys()];
}

function mergeTools(layers: readonly Layer[], world: World, origins: Record<string, string>, defaults: boolean): string[] {
  const tidy = (path: string): string => path.replace(/\/$/, '');
  const added = [...(defaults ? TOOL_DIRS.map(fromBuiltIn) : []), ...collect(layers, 'tools.add', (v) => v.tools?.add)].map((item) => ({
    ...item,
    value: tidy(item.value),
  }));
  for (const { value, layer, key } of added) {
    const problem = layer && forbiddenPlace(join(world.home, value), world);
    if (layer && key && problem) throw wrongValue(layer, key, `~/${value} cannot be shown: ${problem}`);
  }
  const removed = collect(layers, 'tools.remove', (v) => v.tools?.remove);
  for (const { value, layer, key } of removed) {
    const whole = added.find((item) => item.value !== tidy(value) && isWithin(tidy(value), item.value));
    if (whole && layer && key) throw wrongValue(layer, key, `~/${tidy(value)} lies in ~/${whole.value}, which can only be removed as a whole`);
  }
  // What ags itself trusts must stay outside even if the user keeps it in a strange place.
  const shown = added.filter(({ value, layer }) => layer ?? !holdsOwnFiles(join(world.home, value), world));
  return named('tools', shown.filter((item) => !removed.some(({ value }) => isWithin(item.value, tidy(value)))), origins);
}

function mergeMounts(layers: readonly Layer[], world: World, origins: Record<string, string>): ExtraMount[] {
  const asked = collect(layers, 'mounts', (v) => v.mounts?.map(({ path }) => path)).map((item) => {
    const path = normalize(item.value.startsWith('~/') ? join(world.home, item.value.slice(2)) : item.value).replace(/(?<=.)\/$/, '');
    const problem = forbiddenPlace(path, world);
    if (problem && item.layer && item.key) throw wrongValue(item.layer, item.key, `${quote(path)} cannot be shown: ${problem}`);
    return { ...item, value: path };
  });
  const optional = new Set(PLACES.filter((path) => !asked.some(({ value }) => value === path)));
  return named('mounts', [...[...optional].map(fromBuiltIn), ...asked], origins).map((path) => ({ path, optional: optional.has(path) }));
}

function mergeEnvSet(layers: readonly Layer[], origins: Record<string, string>): Record<string, string> {
  const set = new Map<string, string>();
  for (const layer of layers) {
    for (const [name, value] of Object.entries(layer.values.env?.set ?? {})) {
      set.set(name, value);
      origins[`env.set.${name}`] = originOf(layer, `env.set.${name}`);
    }
  }
  return Object.fromEntries(set);
}

function mergeLimits(layers: readonly Layer[], world: World, origins: Record<string, string>): Limits {
  const limits: Record<string, number | null> = {};
  for (const name of LIMIT_NAMES) {
    const key = `limits.${name}`;
    const kind = LIMIT_KINDS[name];
    limits[kind.field] = kind.parse(LIMITS[name], world.memoryTotalBytes) ?? null;
    origins[key] = BUILT_IN;
    for (const layer of layers) {
      const text = layer.values.limits?.[name];
      if (text === undefined) continue;
      const value = kind.parse(String(text), world.memoryTotalBytes);
      if (value === undefined) throw wrongValue(layer, key, `expected ${kind.words}, found ${quote(text)}`);
      if (value !== null && value < kind.min) throw wrongValue(layer, key, `${quote(text)} is too little to run anything; the least is ${kind.format(kind.min)}`);
      limits[kind.field] = value;
      origins[key] = originOf(layer, key);
    }
  }
  return limits as unknown as Limits;
}

function checkPatterns(layers: readonly Layer[], key: string, pick: (values: Layer['values']) => readonly string[] | undefined): void {
  for (const { value, layer, key: at } of collect(layers, key, pick)) {
    const problem = patternProblem(value);
    if (problem && layer && at) throw wrongValue(layer, at, `${quote(value)}: ${problem}`);
  }
}
