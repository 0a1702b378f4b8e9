// sandbox/spec/machine.ts: facts about this machine that the plan is made from. Only looks; changes nothing.
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';

export interface Machine {
  /** System directories; a link (as /bin on a merged system) is made again inside, everything else is bound read-only. */
  readonly system: readonly { readonly path: string; readonly link: string | null }[];
  /** Names below /etc. */
  readonly etc: readonly string[];
  /** Tool directories of the home that exist here, absolute. */
  readonly toolDirs: readonly string[];
  readonly mountPoints: readonly string[];
  /** Directories that would be shown, if no other file system were mounted below them: they cannot lie under an overlay. */
  readonly leftOut: readonly string[];
}

/** Nothing of it is shown. */
export const NO_MACHINE: Machine = { system: [], etc: [], toolDirs: [], mountPoints: [], leftOut: [] };

/** The distribution's own: nobody else puts anything there. */
export const SYSTEM_DIRS: readonly string[] = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** Here others put things too, sockets of their servers for example. Like the above they can be read by everybody. */
export const LOCAL_DIRS: readonly string[] = ['/usr/local', '/opt', '/nix/store'];

export function readMachine(input: { home: string; etc: readonly string[]; toolDirs: readonly string[] }): Machine {
  const mountPoints = readMountPoints();
  const whole = (path: string): boolean => !hasMountBelow({ mountPoints }, path);
  const local = LOCAL_DIRS.filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true);
  const tools = existing(input.home, input.toolDirs);
  return {
    system: [
      ...SYSTEM_DIRS.flatMap((path) => {
        const stat = lstatSync(path, { throwIfNoEntry: false });
        if (stat === undefined) return [];
        return [{ path, link: stat.isSymbolicLink() ? readlinkSync(path) : null }];
      }),
      ...local.filter(whole).map((path) => ({ path, link: null })),
    ],
    etc: input.etc,
    toolDirs: tools.filter(whole),
    mountPoints,
    // What is part of /usr is seen there.
    leftOut: [...local, ...tools].filter((path) => !whole(path) && path !== '/usr/local'),
  };
}

export function hasMountBelow({ mountPoints }: Pick<Machine, 'mountPoints'>, path: string): boolean {
  return mountPoints.some((point) => point.startsWith(`${path}/`));
}

function readMountPoints(): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .flatMap((line) => line.split(' ')[4] ?? [])
    .map(unescapePath);
}

/** As the kernel writes paths in lists of mounts. */
export function unescapePath(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** Most of the many directories that tools may live in are not there: one look at the home rules them out. */
function existing(home: string, dirs: readonly string[]): string[] {
  const there = new Set(existsSync(home) ? readdirSync(home) : []);
  return dirs
    .filter((dir) => dir.startsWith('/') || there.has(dir.split('/')[0] ?? ''))
    .map((dir) => (dir.startsWith('/') ? dir : join(home, dir)))
    .filter(isOrdinary);
}

/** A pipe or a socket in the place of a tool would be a way to talk to the host. */
function isOrdinary(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && (stat.isFile() || stat.isDirectory());
}
