// git/ignored.ts: finds the paths that a project's rules ignore, and the files that git tracks.
// `check-ignore` stops at the first path it rejects: one that looks like a pattern, one in a submodule, one behind a symbolic
// link. So every path is given as "./path", no index is read, and deleted paths are checked where they still exist.
import { userGit } from './host-git.ts';

/** Git opens these files in every directory, and would wait forever at a named pipe. */
export const READ_BY_GIT = /(^|\/)\.git(ignore|attributes)$/;

export const CHECK_IGNORE = ['check-ignore', '--no-index', '-z', '--stdin'] as const;

export function ignoreInput(paths: readonly string[]): Buffer {
  return Buffer.from(paths.map((path) => `./${path}\0`).join(''));
}

export function parseIgnored(answer: Buffer): string[] {
  return answer
    .toString('utf8')
    .split('\0')
    .filter((path) => path.startsWith('./'))
    .map((path) => path.slice(2));
}

interface OwnTree {
  readonly project: string;
  readonly home: string;
  readonly configHome: string | undefined;
}

/** Applies the user's own rules. If git fails, nothing counts as ignored, so everything is shown. */
export async function ignoredOnHost(tree: OwnTree, paths: readonly string[]): Promise<string[]> {
  if (paths.length === 0) return [];
  const answer = await userGit(CHECK_IGNORE, {
    cwd: tree.project,
    home: tree.home,
    configHome: tree.configHome,
    input: ignoreInput(paths),
    // A rule file may be a named pipe, at which git waits.
    timeoutMs: 30_000,
  });
  return answer.exitCode === 0 ? parseIgnored(answer.stdout) : [];
}

/** Files in the index, including those of submodules. */
export async function trackedFiles(tree: OwnTree): Promise<ReadonlySet<string>> {
  const at = { cwd: tree.project, home: tree.home, configHome: tree.configHome };
  const deep = await userGit(['ls-files', '-z', '--recurse-submodules'], at);
  const listing = deep.exitCode === 0 ? deep : await userGit(['ls-files', '-z'], at);
  return new Set(listing.stdout.toString('utf8').split('\0'));
}
