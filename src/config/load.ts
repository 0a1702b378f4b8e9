// config/load.ts: loads the effective configuration for one command.
// Layers, later ones win: built-in, the user's config.yaml, the project's ags.yaml, AGS_ALLOW, flags.
// Invariants: a project's file gets no right that the user has not approved. This file imports neither zod nor yaml, even
// indirectly: they load more slowly than a sandbox starts, and only files that are not in the cache need them.
import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { ConfigInput, EffectiveConfig } from './effective.ts';
import { environmentLayers, flagLayer } from './flags.ts';
import type { Layer } from './file/layer.ts';
import { mergeLayers } from './merge.ts';
import { forbiddenPlace } from './places.ts';
import { readLayerFiles } from './file/read.ts';
import { chooseServices } from './services.ts';

export async function loadConfig(input: ConfigInput): Promise<EffectiveConfig> {
  const own = [...environmentLayers(input.allowVariable), flagLayer(input.flags)];
  const { layers, files, asks, bytes } = await readProject(input);
  if (asks.length > 0) {
    const { requireTrust } = await import('./trust.ts');
    requireTrust({ stateDir: input.stateDir, projectDir: input.projectDir, bytes, asks });
  }
  const config = mergeLayers([...layers, ...own], input, files);
  refuseLinks(config, input);
  return { ...config, services: chooseServices(config.services, input.flags.services) };
}

export interface ProjectLayers {
  readonly layers: readonly Layer[];
  readonly files: readonly string[];
  /** Rights that the project's file requests beyond the user's configuration; empty: no approval needed. */
  readonly asks: readonly string[];
  /** The project's file as read: an approval covers exactly these bytes. */
  readonly bytes: Uint8Array;
  readonly hasProjectFile: boolean;
}

export async function readProject(input: ConfigInput): Promise<ProjectLayers> {
  const read = readLayerFiles(input);
  const file = read.find(({ kind }) => kind === 'project');
  const files = read.map(({ path }) => path);
  const bytes = file?.bytes ?? new Uint8Array();
  if (read.length === 0) return { layers: [], files, asks: [], bytes, hasProjectFile: false };

  const { readLayers } = await import('./file/cache.ts');
  const layers = await readLayers(read, input);
  const project = layers.find(({ kind }) => kind === 'project');
  if (!project) return { layers, files, asks: [], bytes, hasProjectFile: false };

  const { asksOf } = await import('./asks.ts');
  const base = mergeLayers(
    layers.filter((layer) => layer !== project),
    input,
  );
  return { layers, files, asks: asksOf(project, base, mergeLayers(layers, input)), bytes, hasProjectFile: true };
}

// An allowed path can be a link to a forbidden one. Built-in mounts may be links, because the system made them.
function refuseLinks(config: EffectiveConfig, input: ConfigInput): void {
  const mounts = config.mounts.map(({ path }, i) => ({ path, origin: config.origins[`mounts[${i}]`] }));
  const tools = config.toolDirs.map((dir, i) => ({
    path: `${input.home}/${dir}`,
    origin: config.origins[`tools[${i}]`],
  }));
  const named = [...mounts, ...tools].filter(({ origin }) => origin !== undefined);
  if (named.length === 0) return;
  const real = {
    home: realPath(input.home),
    projectDir: realPath(input.projectDir),
    stateDir: realPath(input.stateDir),
    cacheDir: realPath(input.cacheDir),
    userConfigFile: realPath(input.userConfigFile),
  };
  for (const { path, origin } of named) {
    const target = realPath(path);
    const problem = target === path ? undefined : forbiddenPlace(target, real);
    if (problem === undefined) continue;
    throw new AgsError('config.invalid', `${origin}: ${path} leads to ${target}, which cannot be shown: ${problem}`);
  }
}

/** Resolves the part of the path that exists. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}
