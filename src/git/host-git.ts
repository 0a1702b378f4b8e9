// git/host-git.ts: the only place that starts git on the host.
// Invariant: git runs only on repositories that no sandbox can write (the user's own, or our bare staging), and never with a
// hook, a file-system monitor, a prompt or a network.
import { run, type Finished, type RunOptions } from '../lib/process/process.ts';
import { AgsError } from '../protocol/errors.ts';

export const QUIET = [
  '-c',
  'core.hooksPath=/dev/null',
  '-c',
  'core.fsmonitor=false',
  '-c',
  'gc.auto=0',
  '-c',
  'maintenance.auto=false',
  '-c',
  'protocol.allow=never',
] as const;

const BASE_ENV = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
  // A repository may claim to be a partial clone and name a command to fetch from. Its settings can override
  // protocol.allow, and an older git ignores GIT_NO_LAZY_FETCH, but nothing overrides this list.
  GIT_ALLOW_PROTOCOL: 'none',
  GIT_NO_LAZY_FETCH: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_OPTIONAL_LOCKS: '0',
};

const KILLED = 128 + 9;

async function runGit(argv: readonly string[], options: RunOptions): Promise<Finished> {
  const finished = await run(argv, options);
  if (finished.exitCode === KILLED) throw killedGit();
  return finished;
}

/** A killed git gave no answer, which must not be taken for "no". */
export function killedGit(): AgsError {
  return new AgsError('program.killed', 'git was killed before it finished.', {
    hint: 'Perhaps the machine ran out of memory. Try again.',
  });
}

/** Runs git on the user's repository, with the user's settings. Reads only. */
export function userGit(
  args: readonly string[],
  options: { cwd: string; home: string; configHome?: string | undefined; input?: Buffer; timeoutMs?: number },
): Promise<Finished> {
  const env = {
    ...BASE_ENV,
    HOME: options.home,
    ...(options.configHome === undefined ? {} : { XDG_CONFIG_HOME: options.configHome }),
  };
  return runGit(['git', ...QUIET, ...args], {
    cwd: options.cwd,
    env,
    ...(options.input === undefined ? {} : { input: options.input }),
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
  });
}

/** Runs git on a bare repository of ours, with only these settings. */
export function stagingGit(
  gitDir: string,
  args: readonly string[],
  options: Pick<RunOptions, 'input' | 'maxBytes' | 'timeoutMs' | 'env'> = {},
): Promise<Finished> {
  return runGit(['git', ...QUIET, '--git-dir', gitDir, ...args], {
    ...options,
    cwd: '/',
    env: { ...ISOLATED_ENV, ...options.env },
  });
}

/** Writes files of a commit into a directory of ours: runs git on the same repository with our own work tree and index. */
export function checkoutGit(
  place: { gitDir: string; workTree: string; index: string; settings: readonly string[] },
  args: readonly string[],
  options: Pick<RunOptions, 'input' | 'maxBytes' | 'timeoutMs'> = {},
): Promise<Finished> {
  const env = { ...ISOLATED_ENV, GIT_DIR: place.gitDir, GIT_WORK_TREE: place.workTree, GIT_INDEX_FILE: place.index };
  return runGit(['git', ...QUIET, ...place.settings, ...args], { ...options, cwd: place.workTree, env });
}

export const ISOLATED_ENV = {
  ...BASE_ENV,
  HOME: '/nonexistent',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_ATTR_NOSYSTEM: '1',
} as const;
