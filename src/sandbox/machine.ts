// sandbox/machine.ts: facts about this machine that the plan is made from. Only looks; changes nothing.
import { existsSync, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

export interface Machine {
  /** System directories; a link (as /bin on a merged system) is made again inside, everything else is bound read-only. */
  readonly system: readonly { readonly path: string; readonly link: string | null }[];
  /** Names below /etc. */
  readonly etc: readonly string[];
  /** Tool directories of the home that exist here, absolute. */
  readonly toolDirs: readonly string[];
}

const SYSTEM_DIRS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt'] as const;

export function readMachine(input: { home: string; etc: readonly string[]; toolDirs: readonly string[] }): Machine {
  return {
    system: SYSTEM_DIRS.flatMap((path) => {
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (stat === undefined) return [];
      return [{ path, link: stat.isSymbolicLink() ? readlinkSync(path) : null }];
    }),
    etc: input.etc,
    toolDirs: existing(input.home, input.toolDirs),
  };
}

/** Most of the many directories that tools may live in are not there: one look at the home rules them out. */
function existing(home: string, dirs: readonly string[]): string[] {
  const there = new Set(existsSync(home) ? readdirSync(home) : []);
  return dirs
    .filter((dir) => dir.startsWith('/') || there.has(dir.split('/')[0] ?? ''))
    .map((dir) => (dir.startsWith('/') ? dir : join(home, dir)))
    .filter((dir) => existsSync(dir));
}
