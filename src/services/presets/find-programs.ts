// services/presets/find-programs.ts: finds the programs of a service on this machine.
import { accessSync, constants, readdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { ServicePreset } from './preset.ts';

export interface FoundPrograms {
  /** Directories for PATH, starting with those of the service. */
  readonly path: readonly string[];
  /** Changes when another version of a program is installed. */
  readonly stamps: readonly string[];
}

/** Returns the missing names, or where the programs are. With `version`, only directories with that version in their name count. */
export function findPrograms(
  preset: Pick<ServicePreset, 'programs' | 'places'>,
  pathVariable: string,
  version: string | null,
): FoundPrograms | { readonly missing: readonly string[] } {
  const usual = pathVariable.split(':').filter((dir) => dir.startsWith('/'));
  const own = preset.places.flatMap((place) => expand(place, version));
  const anywhere = [...own, ...usual];
  // The server must have exactly the requested version; its tools may have another one.
  const exact = version !== null && preset.places.some((place) => place.includes('*'));
  const found = preset.programs.map((names, i) => findFirst(names, exact && i === 0 ? own : anywhere));
  const missing = preset.programs.filter((_, i) => found[i] === null);
  if (missing.length > 0) return { missing: missing.map((names) => names[0] ?? '') };
  const files = found.filter((file) => file !== null);
  return { path: [...new Set([...files.map((file) => dirname(file)), ...usual])], stamps: files.map(stamp) };
}

function findFirst(names: readonly string[], dirs: readonly string[]): string | null {
  for (const name of names)
    for (const dir of dirs) {
      const file = join(dir, name);
      if (isProgram(file)) return file;
    }
  return null;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Highest version first. */
function expand(place: string, version: string | null): string[] {
  const parts = place.split('/');
  const star = parts.findIndex((part) => part.includes('*'));
  if (star < 0) return [place];
  const parent = parts.slice(0, star).join('/');
  const [before = '', after = ''] = (parts[star] ?? '').split('*');
  const rest = parts.slice(star + 1).join('/');
  return list(parent)
    .filter((name) => name.startsWith(before) && name.endsWith(after))
    .map((name) => ({ name, number: name.slice(before.length, name.length - after.length) }))
    .filter(({ number }) => version === null || number === version)
    .toSorted((a, b) => b.number.localeCompare(a.number, 'en', { numeric: true }))
    .map(({ name }) => join(parent, name, rest));
}

function list(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function stamp(file: string): string {
  const real = realpathSync(file);
  const { size, mtimeMs } = statSync(real);
  return `${basename(file)} ${real} ${size} ${mtimeMs}`;
}
