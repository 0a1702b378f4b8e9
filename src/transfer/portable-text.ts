// transfer/portable-text.ts: texts of a task without the paths of the machine that they were written on, and with those of the next one.
// Invariant: no path below the project, the home or a directory of ags leaves a machine in a text of ags' own.
import { realpathSync } from 'node:fs';
import { PORTABLE } from '../protocol/export.ts';
import type { World } from '../run/host-context.ts';

export type Rewrite = <T>(value: T) => T;

/** Every text in a value, however deep. `values`, by their names, are those of variables: an agent may have printed one. */
export function toPortable(world: World, project: string, values: Readonly<Record<string, string>>): Rewrite {
  const places = placesOf(world, project).flatMap(([path, word]) =>
    [...new Set([path, real(path)])].filter((one) => one.length > 1).map((one) => [one, word] as const),
  );
  // What is short is a word or a number, and would be found everywhere.
  const told = Object.entries(values).filter(([, value]) => value.length >= 6);
  return rewriter(
    // The longest first: the project is below the home more often than not.
    places.toSorted(([a], [b]) => b.length - a.length),
    told.map(([name, value]) => [value, `<${name}>`] as const),
  );
}

export function fromPortable(world: World, project: string): Rewrite {
  return rewriter(placesOf(world, project).map(([path, word]) => [word, path] as const));
}

function placesOf(world: World, project: string): (readonly [string, string])[] {
  return [
    [project, PORTABLE.project],
    [world.stateDir, PORTABLE.state],
    [world.cacheDir, PORTABLE.cache],
    [world.dataDir, PORTABLE.data],
    [world.home, PORTABLE.home],
  ];
}

function rewriter(
  places: readonly (readonly [string, string])[],
  values: readonly (readonly [string, string])[] = [],
): Rewrite {
  const words = new Map(places);
  const any = new RegExp(
    `(?:${places.map(([from]) => from.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)).join('|')})(?![\\w-])`,
    'g',
  );
  const change = (value: unknown): unknown => {
    if (typeof value === 'string') {
      const safe = values.reduce((text, [secret, word]) => text.replaceAll(secret, word), value);
      return safe.replaceAll(any, (found) => words.get(found) ?? found);
    }
    if (Array.isArray(value)) return value.map(change);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, change(inner)]));
  };
  return change as Rewrite;
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
