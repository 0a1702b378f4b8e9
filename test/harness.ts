// test/harness.ts: a developer's machine in a temporary directory: a home, a project, a state directory, and the real command run on it as
// root or as an ordinary user.
import { execFileSync, spawn, spawnSync, type ChildProcess, type SpawnOptions } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { unusedId } from '../src/config/unused-id.ts';
import { learn, teach, type Asker } from './remembered.ts';

export type Caller = 'root' | 'user';

/** Only root can mount, chown and change its user. */
export const IS_ROOT = process.getuid?.() === 0;
/**
 * The callers of boundary tests (conformance, attacks, exec, streams, results). As root, `npm test` uses an ordinary user, and
 * `npm run test:all` uses root in the same files and both in its own. An ordinary user can only be itself.
 */
export const CALLERS: readonly Caller[] = IS_ROOT ? callersFor(process.env['AGS_TEST_CALLERS']) : ['user'];
/** Without user namespaces, scripts/test.mjs reports it and skips single tests and files with `// needs: sandbox`. */
export const HAS_SANDBOX = process.env['AGS_TEST_NO_SANDBOX'] === undefined;
/** The caller of all other tests: an ordinary user if possible, as most people are. */
export const USUAL: readonly Caller[] = CALLERS.slice(-1);
export const ONE: Caller = USUAL[0] ?? 'user';
/** The user of a sandbox whose caller is root. */
export const ROOTS_USER = unusedId();
const USER = IS_ROOT ? 42_424 : (process.getuid?.() ?? 1000);
const REPO = fileURLToPath(new URL('..', import.meta.url));
export const AGS = join(REPO, 'bin/ags.cjs');

/**
 * With "docker", every sandbox of a test is a container, to verify the same promises there. Docker's daemon does not see the /tmp of the
 * tests; inside, /var/tmp is /tmp, so paths would have two names.
 */
const BACKEND = process.env['AGS_TEST_BACKEND'];
const STARTS = ['exec', 'start', 'shell', 'plan'];

export interface Result {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Machine extends Disposable {
  readonly caller: Caller;
  readonly uid: number;
  readonly root: string;
  readonly home: string;
  readonly project: string;
  readonly stateDir: string;
  readonly env: Readonly<Record<string, string>>;
  write(path: string, content: string, mode?: number): void;
  read(path: string): string;
  has(path: string): boolean;
  git(...args: string[]): string;
  /** Runs `ags` in the project (or in `cwd`) to its end. */
  ags(
    args: readonly string[],
    options?: { input?: string; cwd?: string; env?: Record<string, string>; timeoutMs?: number },
  ): Promise<Result>;
  /** Starts `ags` and returns its process. */
  start(args: readonly string[], options?: { cwd?: string; env?: Record<string, string> }): ChildProcess;
  /** Ids of the remaining tasks. */
  tasks(): string[];
}

function callersFor(wish = 'one'): readonly Caller[] {
  const isCore = !/\.(?:full|proof)\.test\.ts$/.test(expect.getState().testPath ?? '');
  if (wish === 'all' || (wish === 'rest' && !isCore)) return ['root', 'user'];
  return wish === 'rest' ? ['root'] : ['user'];
}

/** See remembered.ts; readiness.test.ts and doctor.test.ts do not use it. */
export function shareReadiness({ home, uid }: Machine, asker: Asker = 'command'): void {
  if (teach(home, uid, asker)) giveTo(join(home, '.cache'), uid);
}

function placeOf(disk: boolean | string | undefined): string {
  if (typeof disk === 'string') return disk;
  if (BACKEND !== undefined) return '/var/lib';
  return disk === true ? '/var/tmp' : '/tmp';
}

/** A project with one commit, unless `git` is false, owned by the caller. */
export function createMachine(
  caller: Caller,
  /** `disk`: on a disk, which /tmp may not be, or in the given directory. `user`: an existing ordinary user. */
  options: {
    git?: boolean;
    name?: string;
    files?: Record<string, string>;
    disk?: boolean | string | undefined;
    user?: { readonly uid: number; readonly env: Readonly<Record<string, string>> } | undefined;
  } = {},
): Machine {
  const uid = caller === 'root' ? 0 : (options.user?.uid ?? USER);
  const root = mkdtempSync(join(placeOf(options.disk), 'ags-it-'));
  chmodSync(root, 0o755);
  const home = join(root, 'home');
  const project = join(home, options.name ?? 'code/project');
  const stateDir = join(home, '.local/state/ags');
  mkdirSync(project, { recursive: true });
  const env = {
    ...(caller === 'root' ? {} : options.user?.env),
    HOME: home,
    // To find a program of a test, extend this: directories of root's own PATH may be closed to the caller.
    PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
    TERM: 'xterm',
    // The machine is busy with other tests.
    AGS_MAX_LOAD: '1000',
    SHELL: '/bin/bash',
    LANG: 'C.UTF-8',
    GIT_CONFIG_NOSYSTEM: '1',
  };
  const identity = process.getuid?.() === 0 ? { uid, gid: uid } : {};
  const own = (): void => giveTo(root, uid);
  const asCaller = (program: string, args: readonly string[]): string =>
    execFileSync(program, args, {
      cwd: project,
      env: {
        ...env,
        GIT_AUTHOR_NAME: 'Dev',
        GIT_AUTHOR_EMAIL: 'dev@example.test',
        GIT_COMMITTER_NAME: 'Dev',
        GIT_COMMITTER_EMAIL: 'dev@example.test',
      },
      ...identity,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const machine: Machine = {
    caller,
    uid,
    root,
    home,
    project,
    stateDir,
    env,
    write(path, content, mode = 0o644) {
      const at = join(project, path);
      mkdirSync(dirname(at), { recursive: true });
      writeFileSync(at, content, { mode });
      own();
    },
    read: (path) => readFileSync(join(project, path), 'utf8'),
    has: (path) => existsSync(join(project, path)),
    git: (...args) => asCaller('git', args),
    start(args, more = {}) {
      shareReadiness(machine);
      const options = {
        cwd: more.cwd ?? project,
        env: { ...env, ...more.env },
        stdio: ['pipe', 'pipe', 'pipe'],
      } satisfies SpawnOptions;
      const [verb = '', ...rest] = args;
      if (BACKEND === undefined || !STARTS.includes(verb))
        return spawn(process.execPath, [AGS, ...args], { ...options, ...identity });
      const [program, ...before] = asMember(uid, BACKEND);
      return spawn(program, [...before, process.execPath, AGS, verb, '--backend', BACKEND, ...rest], options);
    },
    ags(args, more = {}) {
      const child = machine.start(args, more);
      const timer = setTimeout(() => child.kill('SIGKILL'), more.timeoutMs ?? 50_000);
      let stdout = '';
      let stderr = '';
      child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
      child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
      child.stdin?.on('error', () => undefined);
      child.stdin?.end(more.input ?? '');
      return new Promise((resolve) =>
        child.on('close', (code, signal) => {
          clearTimeout(timer);
          learn(home, uid);
          resolve({ code, signal, stdout, stderr });
        }),
      );
    },
    tasks: () => (existsSync(join(stateDir, 'tasks')) ? readdirSync(join(stateDir, 'tasks')) : []),
    [Symbol.dispose]() {
      learn(home, uid);
      // Root can remove everything, and whiteouts of an engine belong to root, so root needs no chmod.
      if (process.getuid?.() !== 0) spawnSync('chmod', ['-R', 'u+rwX', root], { stdio: 'ignore' });
      // Node's rm takes ten times as long for thousands of files.
      spawnSync('rm', ['-rf', root], { stdio: 'ignore' });
      // An ordinary user's Podman makes directories that belong to the user's other IDs.
      if (existsSync(root))
        spawnSync('unshare', ['--user', '--map-root-user', '--map-auto', 'rm', '-rf', root], { stdio: 'ignore' });
      rmSync(root, { recursive: true, force: true });
    },
  };
  for (const [path, content] of Object.entries(
    options.files ?? { 'README.md': '# project\n', 'src/a.txt': 'one\ntwo\nthree\n' },
  ))
    machine.write(path, content);
  own();
  if (options.git !== false) {
    // One shell is faster than several processes started from Node.
    asCaller('sh', ['-c', 'git init -q -b main && git add -A && git commit -q -m first']);
  }
  return machine;
}

/** Runs a command with another user and a supplementary group, which Node cannot set for a child. */
export function asMember(uid: number, group: string): [string, ...string[]] {
  if (uid === 0 || process.getuid?.() !== 0) return ['env'];
  return ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, `--groups=${group}`, '--'];
}

export function giveTo(path: string, uid: number): void {
  if (process.getuid?.() !== 0) return;
  unlessGone(() => lchownSync(path, uid, uid));
  if (!existsSync(path)) return;
  for (const entry of unlessGone(() => readdirSync(path, { withFileTypes: true })) ?? []) {
    const child = join(path, entry.name);
    if (entry.isDirectory()) giveTo(child, uid);
    else unlessGone(() => lchownSync(child, uid, uid));
  }
}

/** Ignores files that a live process removes meanwhile. */
function unlessGone<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
}
