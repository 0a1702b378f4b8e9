// test/attacks/mutation/sandbox-parts.ts: attempts against single parts of sandbox setup, before anything starts. See parts.ts.
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type * as HiddenScan from '../../../src/sandbox/spec/hidden-scan.ts';
import type { Mount, SandboxSpec } from '../../../src/protocol/spec.ts';
import { allowed, type PartAttempt } from './parts.ts';

/** An earlier agent put links in this home where something is to be mounted. */
const mountPoints: PartAttempt = async (use, dir) => {
  const { prepareMountPoints } = await use(() => import('../../../src/sandbox/io/prepare-mounts.ts'));
  const [home, outside, tools] = [join(dir, 'home'), join(dir, 'outside'), join(dir, 'tools')];
  for (const path of [home, outside, tools]) mkdirSync(path);
  symlinkSync('../outside', join(home, '.tools'));
  const bind = (from: string, to: string, writable: boolean): Mount =>
    ({ kind: 'bind', from, to, writable, why: '' }) as unknown as Mount;
  const mounts = [bind(home, '/home/user', true), bind(tools, '/home/user/.tools/bin', false)];
  await allowed('', () => prepareMountPoints({ mounts } as unknown as SandboxSpec, () => undefined));
  return readdirSync(outside).map((name) => `${name} was made behind a link`);
};

/** Files that must be hidden appeared, or were renamed, after the last scan of the project. */
const secrets: PartAttempt = async (use, dir) => {
  const { scanHidden } = await use(() => import('../../../src/sandbox/spec/hidden-scan.ts'));
  const sub = join(dir, 'sub');
  mkdirSync(sub);
  writeFileSync(join(sub, 'early.env'), 'x');
  execFileSync('perl', ['-MSocket', '-e', 'socket(S,AF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un("sub/agent.sock"))'], {
    cwd: dir,
  });
  const look = (
    memory: HiddenScan.ScanMemory | null,
    nowMs: number,
    ending = '.env',
  ): HiddenScan.ScanMemory & { paths: string[] } => {
    const input = { project: dir, skipGit: true, key: ending, memory, nowMs };
    const { found, memory: next } = scanHidden({ ...input, matches: (path) => path.endsWith(ending) });
    return { ...next, paths: found.map(({ path }) => path) };
  };
  const later = Date.now() + 60_000;
  utimesSync(sub, 1e9, 1e9);
  const first = look(null, later);
  const fresh = Object.keys(look(null, Date.now()).directories);
  writeFileSync(join(sub, 'late.env'), 'x');
  const second = look(first, later);
  utimesSync(sub, 1e9, 1e9);
  const third = look(first, later);
  const missing = (wanted: readonly string[], paths: readonly string[]): string[] =>
    wanted.filter((path) => !paths.includes(path)).map((path) => `${path} is shown`);
  return [
    ...missing(['sub/early.env', 'sub/agent.sock'], first.paths),
    ...missing(['sub/late.env'], second.paths),
    ...missing(['sub/late.env'], third.paths),
    ...missing(['sub/early.env'], look(look(null, later, '.none'), later).paths),
    ...fresh.map((name) => `${name} is trusted too early`),
  ];
};

const listeners: PartAttempt = async (use) => {
  const { listenerList } = await use(() => import('../../../src/sandbox/io/descriptors.ts'));
  return allowed('a listener that other programs may replace', () =>
    listenerList([{ name: 'names', protocol: 'udp', address: '127.0.0.1', port: 5353 }]),
  );
};

/** Settings of the machine that are links, for root alone or changing, and their replacements in sandboxes. */
const etcSettings: PartAttempt = async (use, dir) => {
  const { ensureEtcCopy } = await use(() => import('../../../src/sandbox/spec/etc-copy.ts'));
  const [etc, outside] = [join(dir, 'etc'), join(dir, 'outside')];
  for (const path of [etc, outside, join(etc, 'sub')]) mkdirSync(path);
  writeFileSync(join(outside, 'secret'), 'secret');
  writeFileSync(join(etc, 'private'), 'secret', { mode: 0o600 });
  writeFileSync(join(etc, 'sub/plain'), 'first');
  for (const name of ['link', 'names']) symlinkSync(join(outside, 'secret'), join(etc, name));
  symlinkSync(outside, join(etc, 'away'));
  symlinkSync('nowhere', join(etc, 'sub/nowhere'));
  execFileSync('perl', ['-MSocket', '-e', 'socket(S,AF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un("etc/sub/sock"))'], {
    cwd: dir,
  });
  const copy = (names = 'ours'): string =>
    ensureEtcCopy({
      cacheDir: join(dir, 'cache'),
      patterns: [],
      // "sub/nowhere" is listed twice: by itself, and with its directory.
      list: () => ['link', 'names', 'away', 'private', 'sub/nowhere', 'sub'],
      made: { names, 'away/more': 'ours' },
      etcDir: etc,
    });
  let first: string;
  try {
    first = copy();
  } catch (error) {
    return [`no sandbox starts any more: ${String(error)}`];
  }
  const others = lstatSync(join(first, 'private')).mode & 0o077;
  const found = [
    ...(lstatSync(join(first, 'link')).isSymbolicLink() ? [] : ['what a link leads to was copied']),
    ...(others === 0 ? [] : ['others may read what is for root alone']),
    ...(readFileSync(join(first, 'names'), 'utf8') === 'ours' ? [] : ['a name of the machine']),
    ...(existsSync(join(first, 'sub/sock')) ? ['a socket'] : []),
    ...(readFileSync(join(outside, 'secret'), 'utf8') === 'secret' ? [] : ['a file of the machine was written over']),
    ...(existsSync(join(outside, 'more')) ? ['a file of the machine was made'] : []),
  ];
  writeFileSync(join(etc, 'sub/plain'), 'second');
  const [second, other] = [copy(), copy('of another')];
  return [
    ...found,
    ...(readFileSync(join(first, 'sub/plain'), 'utf8') === 'first' ? [] : ['a sandbox that runs sees another']),
    ...(readFileSync(join(second, 'sub/plain'), 'utf8') === 'second' ? [] : ['it is not made again']),
    ...(readFileSync(join(other, 'names'), 'utf8') === 'of another' ? [] : ['names of another sandbox']),
  ];
};

export const SANDBOX_PARTS = {
  'mount points': mountPoints,
  secrets,
  listeners,
  'settings of the machine': etcSettings,
} as const satisfies Record<string, PartAttempt>;
