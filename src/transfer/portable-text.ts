// transfer/portable-text.ts: removes the paths of one machine from the texts of a task, and inserts those of the next.
// Invariant: no path below the project, the home or a directory of ags leaves a machine in a text that ags writes.
import { realpathSync } from 'node:fs';
import { PORTABLE } from '../protocol/export.ts';
import type { HostContext } from '../run/host-context.ts';

export type Rewrite = <T>(value: T) => T;

/** Rewrites every text in a value, at any depth. `values` are variables by name: an agent may have printed one. */
export function toPortable(context: HostContext, project: string, values: Readonly<Record<string, string>>): Rewrite {
  const places = placesOf(context, project).flatMap(([path, word]) =>
    [...new Set([path, real(path)])].filter((one) => one.length > 1).map((one) => [one, word] as const),
  );
  // A short value may be a word or a number that occurs everywhere.
  const hidden = Object.entries(values).filter(([, value]) => value.length >= 6);
  return rewriter(
    // The longest path first: the project is usually below the home.
    places.toSorted(([a], [b]) => b.length - a.length),
    hidden.map(([name, value]) => [value, `<${name}>`] as const),
  );
}

export function fromPortable(context: HostContext, project: string): Rewrite {
  return rewriter(placesOf(context, project).map(([path, word]) => [word, path] as const));
}

function placesOf(context: HostContext, project: string): (readonly [string, string])[] {
  return [
    [project, PORTABLE.project],
    [context.stateDir, PORTABLE.state],
    [context.cacheDir, PORTABLE.cache],
    [context.dataDir, PORTABLE.data],
    [context.home, PORTABLE.home],
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
