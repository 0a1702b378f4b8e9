// config/merge.ts: merges all layers into one effective configuration. Pure. Later layers win: single values replace, lists append.
// Invariant: every value in the result has been checked, and `origins` names the source of each.
import { normalize } from 'node:path';
import type { KernelRules, Limits } from '../protocol/spec.ts';
import {
  ENV_PASS,
  ETC,
  HIDE,
  KERNEL,
  LIMITS,
  PATH_ENV,
  PLACES,
  SETUP_TIMEOUT,
  TOOL_DIRS,
  USER,
  BACKEND,
  WORKSPACE,
} from './defaults.ts';
import type { EffectiveConfig, ExtraMount, ImageChoice, PriceConfig, SetupConfig } from './effective.ts';
import { collect, originOf, quote, wrongValue, type Item, type Layer } from './file/layer.ts';
import { mergeAgents } from './agents.ts';
import { mergeChecks } from './checks.ts';
import { mergeCompose } from './compose.ts';
import { mergeHome } from './home.ts';
import { mergeHooks } from './hooks.ts';
import { LIMIT_KINDS, type LimitKind } from './limits.ts';
import { mergeNetwork } from './network/network.ts';
import { patternProblem } from './patterns.ts';
import { isWithin } from '../lib/files.ts';
import { parseDuration } from '../lib/units.ts';
import { forbiddenPlace, overlaps, ownDirectories, type Places } from './places.ts';
import { mergeServices } from './services.ts';
import { mergeSecrets } from './network/secrets.ts';
import { mergeTasks } from './tasks.ts';

export interface MergeContext extends Places {
  readonly memoryTotalBytes: number;
  readonly freeUser?: number | undefined;
}

export function mergeLayers(
  layers: readonly Layer[],
  context: MergeContext,
  files: readonly string[] = [],
): EffectiveConfig {
  const origins: Record<string, string> = {};
  const last = <T>(key: string, builtIn: T, pick: (values: Layer['values']) => T | undefined): T => {
    const layer = layers.findLast(({ values }) => pick(values) !== undefined);
    origins[key] = layer ? originOf(layer, key) : BUILT_IN;
    return (layer && pick(layer.values)) ?? builtIn;
  };
  const all = (
    key: string,
    builtIn: readonly string[],
    pick: (values: Layer['values']) => readonly string[] | undefined,
  ): readonly string[] => named(key, builtIn, collect(layers, key, pick), origins);

  const toolDefaults = last('tools.defaults', true, (v) => v.tools?.defaults);
  const kernel: KernelRules = {
    ptrace: last('kernel.ptrace', KERNEL.ptrace, (v) => v.kernel?.ptrace),
    unixSockets: last('kernel.unixSockets', KERNEL.unixSockets, (v) => v.kernel?.unixSockets),
  };
  for (const [key, pick] of Object.entries(PATTERN_LISTS)) checkPatterns(layers, key, pick);

  const limits = mergeLimits(layers, context, origins);
  const network = mergeNetwork(layers, context.home, last, origins);
  const compose = mergeCompose(layers, last, all);
  const composed = layers.findLast(({ values }) => values.compose !== undefined);
  if (composed !== undefined)
    origins['compose.enabled'] = originOf(composed, 'compose.enabled' in composed.at ? 'compose.enabled' : 'compose');
  return {
    user: last('user', context.freeUser ?? USER, (v) => v.user),
    backend: last('backend', BACKEND, (v) => v.backend),
    image: mergeImage(layers, origins),
    runtime: last<string | null>('runtime', null, (v) => v.runtime),
    compose,
    docker: {
      enabled: last('docker.enabled', false, (v) => v.docker?.enabled) || compose !== null,
      registries: all('docker.registries', [], (v) => v.docker?.registries),
    },
    workspace: last('workspace', WORKSPACE, (v) => v.workspace),
    home: mergeHome(layers, context, origins),
    toolDefaults,
    toolDirs: mergeTools(layers, context, origins, toolDefaults),
    mounts: mergeMounts(layers, context, origins),
    etc: all('etc', ETC, (v) => v.etc),
    envPass: all('env.pass', ENV_PASS, (v) => v.env?.pass),
    pathEnv: PATH_ENV,
    envSet: mergeEnvSet(layers, origins),
    // Built-in patterns hide only untracked files. A pattern that the user repeats also hides tracked ones.
    hide: named('hide', HIDE, collect(layers, 'hide', PATTERN_LISTS.hide), origins, 'twice'),
    reveal: all('reveal', [], PATTERN_LISTS.reveal),
    limits,
    kernel,
    network,
    secrets: mergeSecrets(layers, context.home),
    setup: mergeSetup(layers, last, origins),
    services: mergeServices(layers, limits, network, origins),
    checks: mergeChecks(layers, last, origins),
    mergeCheck: last('merge.check', false, (v) => v.merge?.check),
    hooks: mergeHooks(layers, context.home, last, origins),
    tasks: mergeTasks(layers, last),
    agents: mergeAgents(layers, context.home, origins),
    prices: mergePrices(layers, origins),
    risky: all('review.risky', [], PATTERN_LISTS['review.risky']),
    origins,
    files,
  };
}

const BUILT_IN = 'built-in';

/** Both keys choose the image, so the last layer with either decides; within one layer the Dockerfile wins. */
function mergeImage(layers: readonly Layer[], origins: Record<string, string>): ImageChoice | null {
  const layer = layers.findLast(({ values }) => values.image !== undefined || values.dockerfile !== undefined);
  origins['image'] = BUILT_IN;
  if (layer === undefined) return null;
  const { image, dockerfile } = layer.values;
  origins['image'] = originOf(layer, dockerfile === undefined ? 'image' : 'dockerfile');
  if (dockerfile !== undefined) return { kind: 'dockerfile', path: normalize(dockerfile) };
  if (image === undefined || image === 'none') return null;
  return image === 'devcontainer' ? { kind: 'devcontainer' } : { kind: 'reference', reference: image };
}

const PATTERN_LISTS = {
  hide: (v: Layer['values']) => v.hide,
  reveal: (v: Layer['values']) => v.reveal,
  'setup.inputs': (v: Layer['values']) => v.setup?.inputs,
  'review.risky': (v: Layer['values']) => v.review?.risky,
};

/** The values without repetitions. Notes the origin of each by its index in the result, unless it is built-in. */
function named(
  key: string,
  builtIn: readonly string[],
  items: readonly Item<string>[],
  origins: Record<string, string>,
  again: 'once' | 'twice' = 'once',
): readonly string[] {
  if (items.length === 0) return builtIn;
  const before = again === 'once' ? [] : builtIn;
  const seen = new Set(again === 'once' ? builtIn : []);
  for (const { value, origin } of items) {
    if (seen.has(value)) continue;
    origins[`${key}[${before.length + seen.size}]`] = origin;
    seen.add(value);
  }
  return [...before, ...seen];
}

function mergeTools(
  layers: readonly Layer[],
  context: MergeContext,
  origins: Record<string, string>,
  defaults: boolean,
): readonly string[] {
  const added = collect(layers, 'tools.add', (v) => v.tools?.add).map((item) => ({
    ...item,
    value: withoutSlash(item.value),
  }));
  const removed = collect(layers, 'tools.remove', (v) => v.tools?.remove).map((item) => ({
    ...item,
    value: withoutSlash(item.value),
  }));
  for (const { value, layer, key } of added) {
    const problem = forbiddenPlace(`${context.home}/${value}`, context);
    if (problem) throw wrongValue(layer, key, `~/${value} cannot be shown: ${problem}`);
  }
  const builtIn = defaults ? TOOL_DIRS : [];
  for (const { value, layer, key } of removed) {
    const whole = [...builtIn, ...added.map((item) => item.value)].find((dir) => dir !== value && isWithin(value, dir));
    if (whole) throw wrongValue(layer, key, `~/${value} lies in ~/${whole}, which can only be removed as a whole`);
  }
  const stays = (dir: string): boolean => !removed.some(({ value }) => isWithin(dir, value));
  // Files that ags trusts must stay outside, even if the user keeps them in an unusual place.
  const own = ownDirectories(context);
  const shown = builtIn.filter(
    (dir) => stays(dir) && !own.some((directory) => overlaps(`${context.home}/${dir}`, directory)),
  );
  return named(
    'tools',
    shown,
    added.filter(({ value }) => stays(value)),
    origins,
  );
}

function mergeMounts(layers: readonly Layer[], context: MergeContext, origins: Record<string, string>): ExtraMount[] {
  const asked = collect(layers, 'mounts', (v) => v.mounts?.map(({ path }) => path)).map((item) => {
    const path = withoutSlash(
      normalize(item.value.startsWith('~/') ? `${context.home}/${item.value.slice(2)}` : item.value),
    );
    const problem = forbiddenPlace(path, context);
    if (problem) throw wrongValue(item.layer, item.key, `${quote(path)} cannot be shown: ${problem}`);
    return { ...item, value: path };
  });
  const optional = PLACES.filter((path) => !asked.some(({ value }) => value === path));
  return named('mounts', optional, asked, origins).map((path) => ({ path, optional: optional.includes(path) }));
}

function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
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

function mergePrices(layers: readonly Layer[], origins: Record<string, string>): Record<string, PriceConfig> {
  const prices = new Map<string, PriceConfig>();
  for (const layer of layers) {
    for (const [model, text] of Object.entries(layer.values.prices ?? {})) {
      const [input = 0, output = 0, cached] = text.split('/').map(Number);
      prices.set(model, { input, output, cached });
      origins[`prices.${model}`] = originOf(layer, `prices.${model}`);
    }
  }
  return Object.fromEntries(prices);
}

function mergeLimits(layers: readonly Layer[], context: MergeContext, origins: Record<string, string>): Limits {
  const merged = <Field extends keyof Limits>(field: Field): Limits[Field] => {
    const { name, parse, words, min, format }: LimitKind<Limits[Field]> = LIMIT_KINDS[field];
    const key = `limits.${name}`;
    let last = parse(LIMITS[name], context.memoryTotalBytes);
    if (last === undefined) throw new Error(`the built-in ${key} is not valid`);
    origins[key] = BUILT_IN;
    for (const layer of layers) {
      const text = layer.values.limits?.[name];
      if (text === undefined) continue;
      const value = parse(String(text), context.memoryTotalBytes);
      if (value === undefined) throw wrongValue(layer, key, `expected ${words}, found ${quote(text)}`);
      if (value !== null && value < min)
        throw wrongValue(layer, key, `${quote(text)} is too little to run anything; the minimum is ${format(min)}`);
      last = value;
      origins[key] = originOf(layer, key);
    }
    return last;
  };
  return {
    processes: merged('processes'),
    memoryBytes: merged('memoryBytes'),
    openFiles: merged('openFiles'),
    fileBytes: merged('fileBytes'),
    diskBytes: merged('diskBytes'),
    tmpBytes: merged('tmpBytes'),
    cpuSeconds: merged('cpuSeconds'),
    wallSeconds: merged('wallSeconds'),
    cpus: merged('cpus'),
  };
}

function mergeSetup(
  layers: readonly Layer[],
  last: (key: string, builtIn: string, pick: (values: Layer['values']) => string | undefined) => string,
  origins: Record<string, string>,
): SetupConfig {
  const timeout = last('setup.timeout', SETUP_TIMEOUT, (v) => v.setup?.timeout);
  const all = (key: string, pick: (values: Layer['values']) => readonly string[] | undefined): string[] =>
    collect(layers, key, pick).map(({ value, origin }, i) => {
      origins[`${key}[${i}]`] = origin;
      return value;
    });
  const inputs = all('setup.inputs', PATTERN_LISTS['setup.inputs']);
  return {
    // Repetitions stay: a command may be needed twice.
    run: all('setup.run', (v) => v.setup?.run),
    inputs: inputs.length === 0 ? null : inputs,
    timeoutSeconds: timeout === 'none' ? null : (parseDuration(timeout) ?? null),
  };
}

function checkPatterns(
  layers: readonly Layer[],
  key: string,
  pick: (values: Layer['values']) => readonly string[] | undefined,
): void {
  for (const { value, layer, key: at } of collect(layers, key, pick)) {
    const problem = patternProblem(value);
    if (problem) throw wrongValue(layer, at, `${quote(value)}: ${problem}`);
  }
}
