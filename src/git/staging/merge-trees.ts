// git/staging/merge-trees.ts: merges three trees without a work tree, with git's own merge and our own settings.
// The caller names the base: both sides become commits that have only that base in common.
import { AgsError } from '../../protocol/errors.ts';
import { run } from '../../lib/process/process.ts';
import { writeCommit } from '../commit-text.ts';
import { ISOLATED_ENV, stagingGit } from '../host-git.ts';

/** `marked` is the tree of a conflicting merge; its files contain git's conflict markers. */
export type MergedTree = { readonly tree: string } | { readonly conflicts: readonly string[]; readonly marked: string };

/** All ids are of trees that `staging` can read. */
export async function mergeTrees(
  staging: string,
  sides: { base: string; ours: string; theirs: string },
): Promise<MergedTree> {
  if (sides.ours === sides.base || sides.ours === sides.theirs) return { tree: sides.theirs };
  if (sides.theirs === sides.base) return { tree: sides.ours };
  await requireVersion();
  const commit = (tree: string, parents: readonly string[]): Promise<string> =>
    writeCommit(staging, { tree, parents, author: NOBODY, committer: NOBODY, message: 'side' });
  const base = await commit(sides.base, []);
  const ours = await commit(sides.ours, [base]);
  const theirs = await commit(sides.theirs, [base]);
  const args = ['merge-tree', '--write-tree', '-z', '--name-only', '--no-messages', ours, theirs];
  const merged = await stagingGit(staging, args, { maxBytes: 1024 ** 3, timeoutMs: 10 * 60_000 });
  const [tree = '', ...names] = merged.stdout.toString('utf8').split('\0');
  if (merged.exitCode === 0) return { tree };
  if (merged.exitCode !== 1) throw new Error(`git merge-tree failed in ${staging}: ${merged.stderr.trim()}`);
  return { conflicts: [...new Set(names.filter((name) => name !== ''))], marked: tree };
}

const NOBODY = 'ags <ags@localhost> 0 +0000';

async function requireVersion(): Promise<void> {
  const { stdout } = await run(['git', 'version'], { cwd: '/', env: ISOLATED_ENV });
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(stdout.toString('latin1')) ?? [];
  if (Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 38)) return;
  throw new AgsError(
    'backend.unavailable',
    `Merging needs git 2.38 or later; this is ${stdout.toString('latin1').trim().replace('git version ', '')}.`,
    { hint: 'Update git, take the files with ags apply, or merge the branch yourself: git merge' },
  );
}
