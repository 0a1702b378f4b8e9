// test/harness.ts: a developer's machine in a temporary directory: a home, a project, a state directory, and the real
// command run on it as root or as an ordinary user.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
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

export type Caller = 'root' | 'user';

/** As root both callers are tried; an ordinary user can only be itself. */
export const CALLERS: readonly Caller[] = process.getuid?.() === 0 ? ['root', 'user'] : ['user'];
const USER = process.getuid?.() === 0 ? 42_424 : (process.getuid?.() ?? 1000);
const REPO = new URL('..', import.meta.url).pathname;
export const AGS = join(REPO, 'bin/ags.cjs');

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
  /** Starts `ags` and hands the process back. */
  start(args: readonly string[], options?: { cwd?: string; env?: Record<string, string> }): ChildProcess;
  /** Ids of the tasks that are left. */
  tasks(): string[];
}

const READY = new Map<Caller, Buffer>();

/**
 * Whether a sandbox works here is found out by starting several, once per user and boot. It is the same machine in every test,
 * so what the first has found out the others remember; readiness.test.ts and doctor.test.ts find it out anew.
 */
export function shareReadiness({ caller, home, uid }: Machine): void {
  const cache = join(home, '.cache/ags');
  const file = join(cache, 'ready.json');
  const known = READY.get(caller);
  if (known === undefined) {
    if (existsSync(file)) READY.set(caller, readFileSync(file));
  } else if (!existsSync(join(home, '.cache'))) {
    mkdirSync(cache, { recursive: true, mode: 0o700 });
    writeFileSync(file, known, { mode: 0o600 });
    giveTo(join(home, '.cache'), uid);
  }
}

/** A project with one commit, unless `git` is false. Everything is owned by the caller. */
export function createMachine(
  caller: Caller,
  /** `disk`: not in memory, which /tmp may be. */
  options: { git?: boolean; name?: string; files?: Record<string, string>; disk?: boolean } = {},
): Machine {
  const uid = caller === 'root' ? 0 : USER;
  const root = mkdtempSync(options.disk === true ? '/var/tmp/ags-it-' : '/tmp/ags-it-');
  chmodSync(root, 0o755);
  const home = join(root, 'home');
  const project = join(home, options.name ?? 'code/project');
  const stateDir = join(home, '.local/state/ags');
  mkdirSync(project, { recursive: true });
  const env = {
    HOME: home,
    PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
    TERM: 'xterm',
    SHELL: '/bin/bash',
    LANG: 'C.UTF-8',
    GIT_CONFIG_NOSYSTEM: '1',
  };
  const identity = process.getuid?.() === 0 ? { uid, gid: uid } : {};
  const own = (): void => giveTo(root, uid);
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
    git: (...args) =>
      execFileSync('git', args, {
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
      }),
    start: (args, more = {}) =>
      spawn(process.execPath, [AGS, ...args], {
        cwd: more.cwd ?? project,
        env: { ...env, ...more.env },
        ...identity,
        stdio: ['pipe', 'pipe', 'pipe'],
      }),
    ags(args, more = {}) {
      shareReadiness(machine);
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
          resolve({ code, signal, stdout, stderr });
        }),
      );
    },
    tasks: () => (existsSync(join(stateDir, 'tasks')) ? readdirSync(join(stateDir, 'tasks')) : []),
    [Symbol.dispose]() {
      execFileSync('chmod', ['-R', 'u+rwX', root]);
      rmSync(root, { recursive: true, force: true });
    },
  };
  for (const [path, content] of Object.entries(
    options.files ?? { 'README.md': '# project\n', 'src/a.txt': 'one\ntwo\nthree\n' },
  ))
    machine.write(path, content);
  own();
  if (options.git !== false) {
    machine.git('init', '-q', '-b', 'main');
    machine.git('add', '-A');
    machine.git('commit', '-q', '-m', 'first');
  }
  return machine;
}

export function giveTo(path: string, uid: number): void {
  if (process.getuid?.() !== 0) return;
  lchownSync(path, uid, uid);
  if (!existsSync(path)) return;
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const child = join(path, entry.name);
    if (entry.isDirectory()) giveTo(child, uid);
    else lchownSync(child, uid, uid);
  }
}
