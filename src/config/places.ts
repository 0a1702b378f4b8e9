// config/places.ts: paths that no configuration may show inside a sandbox.
// Invariant: the real home as a whole, the kernel's own file systems, the directories of host sockets, and the files that ags
// itself trusts stay outside. Callers must check a link again after resolving it.
import { dirname } from 'node:path';
import { isWithin } from '../lib/files.ts';

export interface Places {
  readonly home: string;
  readonly projectDir: string;
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly userConfigFile: string;
}

/** Why this absolute, normalised path may not be shown, or undefined when it may. */
export function forbiddenPlace(path: string, places: Places): string | undefined {
  if (isWithin(places.home, path))
    return path === places.home
      ? 'the home as a whole is never shown'
      : 'your home lies below it, and is never shown as a whole';
  if (KERNEL.some((root) => isWithin(path, root))) return 'the sandbox has its own';
  if (SOCKETS.some((root) => isWithin(path, root))) return 'sockets of this machine live there';
  if (WHOLE.has(path)) return 'as a whole it is never shown; name what you need below it';
  if (isWithin(path, places.projectDir)) return 'the project is visible anyway, without its hidden files';
  return ownDirectories(places).some((own) => overlaps(path, own)) ? 'ags keeps its own files there' : undefined;
}

/** Directories that ags trusts at its next start; an agent must not even read them. */
export function ownDirectories(places: Places): readonly string[] {
  return [places.stateDir, places.cacheDir, dirname(places.userConfigFile)];
}

export function overlaps(a: string, b: string): boolean {
  return isWithin(a, b) || isWithin(b, a);
}

const KERNEL = ['/proc', '/sys', '/dev'];
const SOCKETS = ['/run', '/var/run'];
const WHOLE = new Set(['/', '/etc', '/home', '/root', '/tmp', '/var', '/var/tmp', '/var/lib', '/mnt', '/media']);
