// git/work-trees.ts: lists the work trees of a repository, and the branch checked out in each.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { realPath } from './belonging.ts';
import { ownerGit } from './owner-git.ts';

export interface WorkTree {
  readonly path: string;
  readonly gitDir: string;
  /** The full name of the branch; null if none. A branch that is being rebased counts as checked out. */
  readonly branch: string | null;
  /** An unfinished operation in words, such as "a rebase"; null if there is none. */
  readonly underWay: string | null;
}

/** `gitDir` may be that of any work tree. Omits work trees whose directory is gone. */
export async function workTrees(gitDir: string): Promise<WorkTree[]> {
  const list = ['worktree', 'list', '--porcelain'];
  const exact = await ownerGit(gitDir, [...list, '-z'], { timeoutMs: 30_000 });
  // git before 2.36 has no -z here, so a path with a line break looks like two.
  const listed = exact.exitCode === 129 ? await ownerGit(gitDir, list, { timeoutMs: 30_000 }) : exact;
  const end = listed === exact ? '\0' : '\n';
  if (listed.exitCode !== 0) throw new Error(`git worktree list failed in ${gitDir}: ${listed.stderr.trim()}`);
  return listed.stdout
    .toString('utf8')
    .split(`${end}${end}`)
    .flatMap((block) => {
      const lines = block.split(end);
      const path = lines.find((line) => line.startsWith('worktree '))?.slice('worktree '.length);
      const branch = lines.find((line) => line.startsWith('branch '))?.slice('branch '.length) ?? null;
      if (path === undefined || lines.includes('bare') || realPath(path) === null) return [];
      const own = gitDirOf(path);
      if (own === null) return [];
      const begun = underWay(own);
      return [{ path, gitDir: own, branch: branch ?? begun?.branch ?? null, underWay: begun?.what ?? null }];
    });
}

function gitDirOf(path: string): string | null {
  const dotGit = join(path, '.git');
  const stat = statSync(dotGit, { throwIfNoEntry: false });
  if (stat?.isDirectory() === true) return realPath(dotGit);
  if (stat?.isFile() !== true) return null;
  const named = /^gitdir: (.+)$/m.exec(readFileSync(dotGit, 'utf8'))?.[1];
  return named === undefined ? null : realPath(resolve(dirname(dotGit), named));
}

const BEGUN: readonly (readonly [string, string])[] = [
  ['rebase-merge', 'a rebase'],
  ['rebase-apply', 'a rebase'],
  ['MERGE_HEAD', 'a merge'],
  ['CHERRY_PICK_HEAD', 'a cherry-pick'],
  ['REVERT_HEAD', 'a revert'],
  ['BISECT_START', 'a bisect'],
];

function underWay(gitDir: string): { what: string; branch: string | null } | null {
  const [file, what] = BEGUN.find(([name]) => existsSync(join(gitDir, name))) ?? [];
  if (file === undefined || what === undefined) return null;
  const name = file.startsWith('rebase-') ? join(gitDir, file, 'head-name') : join(gitDir, 'BISECT_START');
  const text =
    statSync(name, { throwIfNoEntry: false })?.isFile() === true ? readFileSync(name, 'utf8').trim() : undefined;
  const branch = text === undefined || text.startsWith('refs/') ? (text ?? null) : `refs/heads/${text}`;
  return { what, branch };
}
