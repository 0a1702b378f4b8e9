// git/work-trees.ts: the work trees of a repository, and what is checked out in each.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { realPath } from './belonging.ts';
import { ownerGit } from './owner-git.ts';

export interface WorkTree {
  readonly path: string;
  readonly gitDir: string;
  /** The branch in full; null: none is. A branch that is being rebased counts as checked out. */
  readonly branch: string | null;
  /** In words, if something has been begun there that is not finished: a merge, a rebase. */
  readonly underWay: string | null;
}

/** `gitDir` of any of them. Those whose directory is gone are left out. */
export async function workTrees(gitDir: string): Promise<WorkTree[]> {
  const listed = await ownerGit(gitDir, ['worktree', 'list', '--porcelain', '-z'], { timeoutMs: 30_000 });
  if (listed.exitCode !== 0) throw new Error(`git worktree list failed in ${gitDir}: ${listed.stderr.trim()}`);
  return listed.stdout
    .toString('utf8')
    .split('\0\0')
    .flatMap((block) => {
      const lines = block.split('\0');
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
  ['BISECT_START', 'a search by bisection'],
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
