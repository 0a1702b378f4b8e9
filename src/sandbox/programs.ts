// sandbox/programs.ts: finds the host programs that build sandboxes, and names the command that installs a missing one.
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { accessSync, constants } from 'node:fs';

/** Never searches the user's PATH, which may contain a project directory. */
export function findProgram(name: string, dirs: readonly string[] = PROGRAM_DIRS): string | null {
  return dirs.map((dir) => join(dir, name)).find((path) => isExecutable(path)) ?? null;
}

export function installCommand(packages: readonly string[]): string {
  const managers: readonly (readonly [string, string])[] = [
    ['apt-get', 'apt-get install -y'],
    ['dnf', 'dnf install -y'],
    ['pacman', 'pacman -S --noconfirm'],
    ['zypper', 'zypper install -y'],
    ['apk', 'apk add'],
  ];
  const found = managers.find(([program]) => findProgram(program) !== null)?.[1] ?? 'your package manager: install';
  return `sudo ${found} ${packages.join(' ')}`;
}

export function programMissing(names: readonly string[]): AgsError {
  const packages = [
    ...new Set(names.map((name) => (name === 'bwrap' ? 'bubblewrap' : name === 'perl' ? 'perl' : 'util-linux'))),
  ];
  return new AgsError(
    'backend.unavailable',
    `The sandbox needs ${names.join(', ')}, which ${names.length === 1 ? 'is' : 'are'} not installed.`,
    { hint: `Install: ${installCommand(packages)}` },
  );
}

export const PROGRAM_DIRS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/run/current-system/sw/bin'];

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
