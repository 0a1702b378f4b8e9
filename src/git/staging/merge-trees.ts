// git/staging/merge-trees.ts: merges three trees, or three versions of a file, with git's own merge and our own settings. Needs no work tree.
// The caller names the base: both sides become commits that have only that base in common.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

interface Merge {
  readonly text: Buffer;
  /** False if both changed the same lines; the text then has both, with git's conflict markers. */
  readonly clean: boolean;
}

/** Returns null if they are not text. */
export async function mergeText(
  scratch: string,
  versions: { base: Buffer; host: Buffer; sandbox: Buffer },
): Promise<Merge | null> {
  if (Object.values(versions).some((bytes) => bytes.includes(0) || bytes.length > 8 * 1024 * 1024)) return null;
  const dir = mkdtempSync(join(scratch, 'merge-'));
  try {
    const file = (name: keyof typeof versions): string => join(dir, name);
    for (const name of ['base', 'host', 'sandbox'] as const) writeFileSync(file(name), versions[name]);
    const labels = ['-L', 'yours', '-L', 'before', '-L', 'sandbox'];
    const merged = await run(
      ['git', 'merge-file', '-p', '-q', ...labels, file('host'), file('base'), file('sandbox')],
      {
        cwd: dir,
        env: ISOLATED_ENV,
        maxBytes: 64 * 1024 * 1024,
      },
    );
    // The exit code counts conflicts up to 127; a higher code is a failure.
    return merged.exitCode <= 127 ? { text: merged.stdout, clean: merged.exitCode === 0 } : null;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
