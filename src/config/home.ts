// config/home.ts: merges the `home` section. Pure.
// Invariant: a kept home is never the real home, in the project, or among the files that ags trusts.
import { normalize } from 'node:path';
import type { HomeChoice } from './effective.ts';
import { originOf, quote, wrongValue, type Layer } from './file/layer.ts';
import { isWithin } from '../lib/files.ts';
import { forbiddenPlace, type Places } from './places.ts';

export function mergeHome(layers: readonly Layer[], places: Places, origins: Record<string, string>): HomeChoice {
  const layer = layers.findLast(({ values }) => values.home?.keep !== undefined);
  const sharing = layers.findLast(({ values }) => values.home?.shared !== undefined);
  origins['home.keep'] = layer === undefined ? 'built-in' : originOf(layer, 'home.keep');
  origins['home.shared'] = sharing === undefined ? 'built-in' : originOf(sharing, 'home.shared');
  const keep = layer?.values.home?.keep ?? 'task';
  if (layer === undefined || keep === 'task' || keep === 'project') return { keep: keep === 'project' ? keep : 'task' };
  const written = keep.startsWith('~/') ? `${places.home}/${keep.slice(2)}` : keep;
  const path = normalize(written).replace(/(?<=.)\/+$/, '');
  const inProject = isWithin(path, places.projectDir) ? 'it is in the project' : undefined;
  const problem = inProject ?? forbiddenPlace(path, places);
  if (problem !== undefined) throw wrongValue(layer, 'home.keep', `${quote(keep)} cannot hold a home: ${problem}`);
  return { keep: 'directory', path, shared: sharing?.values.home?.shared ?? false };
}

export function homeText(home: HomeChoice): string {
  return home.keep === 'directory' ? home.path : home.keep;
}
