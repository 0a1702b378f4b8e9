// git/ignored.ts: which paths the rules of a project ignore, and which files git tracks all the same.
// `check-ignore` ends at the first path it does not like: one that looks like a pattern, one in a submodule, one behind a
// symbolic link. So every path is given as "./path", no index is read, and what was deleted is asked where it still exists.
import { userGit } from './host-git.ts';

/** git opens these wherever it goes, and would wait at a pipe for ever. */
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

/** By the user's own files. None if git does not want to answer: what is not ignored is shown. */
export async function ignoredOnHost(tree: OwnTree, paths: readonly string[]): Promise<string[]> {
  if (paths.length === 0) return [];
  const answer = await userGit(CHECK_IGNORE, {
    cwd: tree.project,
    home: tree.home,
    configHome: tree.configHome,
    input: ignoreInput(paths),
    // Rules may be a pipe, for which git waits.
    timeoutMs: 30_000,
  });
  return answer.exitCode === 0 ? parseIgnored(answer.stdout) : [];
}

/** Files in the index, and in those of submodules. */
export async function trackedFiles(tree: OwnTree): Promise<ReadonlySet<string>> {
  const at = { cwd: tree.project, home: tree.home, configHome: tree.configHome };
  const deep = await userGit(['ls-files', '-z', '--recurse-submodules'], at);
  const listing = deep.exitCode === 0 ? deep : await userGit(['ls-files', '-z'], at);
  return new Set(listing.stdout.toString('utf8').split('\0'));
}
