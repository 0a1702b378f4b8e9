// sandbox/spec/machine.ts: reads the facts about this machine that a plan needs. Changes nothing.
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';

export interface Machine {
  /** System directories. A link, such as /bin on a merged system, is created inside; all others are bound read-only. */
  readonly system: readonly { readonly path: string; readonly link: string | null }[];
  /** Names below /etc. */
  readonly etc: readonly string[];
  /** Absolute paths of the home's tool directories that exist. */
  readonly toolDirs: readonly string[];
  readonly mountPoints: readonly string[];
  /** Directories that are not shown because another file system is mounted below them: they cannot lie under an overlay. */
  readonly leftOut: readonly string[];
}

/** Shows nothing of the machine. */
export const NO_MACHINE: Machine = { system: [], etc: [], toolDirs: [], mountPoints: [], leftOut: [] };

/** Directories that only the distribution fills. */
export const SYSTEM_DIRS: readonly string[] = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** Directories that other software fills too, for example with sockets of servers. Like the above, all users can read them. */
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
    // /usr/local is visible as part of /usr.
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

/** Decodes paths of the kernel's mount lists. */
export function unescapePath(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** Most candidate tool directories do not exist; one listing of the home rules them out. */
function existing(home: string, dirs: readonly string[]): string[] {
  const there = new Set(existsSync(home) ? readdirSync(home) : []);
  return dirs
    .filter((dir) => dir.startsWith('/') || there.has(dir.split('/')[0] ?? ''))
    .map((dir) => (dir.startsWith('/') ? dir : join(home, dir)))
    .filter(isOrdinary);
}

/** A pipe or a socket in place of a tool would be a channel to the host. */
function isOrdinary(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && (stat.isFile() || stat.isDirectory());
}
