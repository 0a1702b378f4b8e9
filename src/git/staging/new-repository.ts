// git/staging/new-repository.ts: creates a repository from an imported pack, or from a directory for attacks that need a real one.
// Invariant: ags writes its files itself, without templates, hooks or the user's settings. No filter runs and no encoding applies while
// its files are checked out, whatever its attributes say.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import { checkoutGit, ISOLATED_ENV, stagingGit } from '../host-git.ts';
import { setAttributes } from './layer-git.ts';

/** Returns its git directory. `branch` is a short name. */
export function createRepository(directory: string, objectFormat: 'sha1' | 'sha256', branch: string): string {
  const git = join(directory, '.git');
  for (const name of ['objects/info', 'objects/pack', 'refs/heads', 'refs/tags', 'info'])
    mkdirSync(join(git, name), { recursive: true });
  writeFileSync(join(git, 'HEAD'), `ref: refs/heads/${branch}\n`);
  const format =
    objectFormat === 'sha256'
      ? '\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n[core]\n'
      : '\trepositoryformatversion = 0\n';
  writeFileSync(join(git, 'config'), `[core]\n${format}\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n`);
  return git;
}

export async function checkOut(directory: string, commit: string): Promise<void> {
  const git = join(directory, '.git');
  const at = { gitDir: git, workTree: directory, index: join(git, 'index'), settings: [] };
  setAttributes(git, 'changed');
  for (const args of [
    ['read-tree', commit],
    ['checkout-index', '-a', '-u', '-f', '-q'],
  ]) {
    const done = await checkoutGit(at, args, { timeoutMs: 30 * 60_000 });
    if (done.exitCode === 0) continue;
    const said = done.stderr.trim().split('\n').at(-1) ?? '';
    throw /No space left|quota/i.test(said)
      ? new AgsError('disk.full', `There is no room left on the disk of ${directory}.`, { hint: 'Free some space.' })
      : new AgsError('import.refused', `The files of the repository could not be written: ${said}`);
  }
  rmSync(join(git, 'info/attributes'));
}

const SOMEBODY = {
  GIT_AUTHOR_NAME: 'ags',
  GIT_AUTHOR_EMAIL: 'ags@localhost',
  GIT_COMMITTER_NAME: 'ags',
  GIT_COMMITTER_EMAIL: 'ags@localhost',
};

/** Commits every file of the directory on the branch main. Returns the commit. */
export async function commitSample(directory: string): Promise<string> {
  const git = createRepository(directory, 'sha1', 'main');
  const at = { gitDir: git, workTree: directory, index: join(git, 'index'), settings: [] };
  await done(checkoutGit(at, ['add', '-A', '-f']));
  const tree = await done(checkoutGit(at, ['write-tree']));
  const commit = await done(
    stagingGit(git, ['commit-tree', '-m', 'Start', tree], { env: { ...ISOLATED_ENV, ...SOMEBODY } }),
  );
  await done(stagingGit(git, ['update-ref', 'refs/heads/main', commit]));
  return commit;
}

async function done(finished: ReturnType<typeof stagingGit>): Promise<string> {
  const { exitCode, stdout, stderr } = await finished;
  if (exitCode !== 0) throw new Error(`git could not make a repository: ${stderr.trim()}`);
  return stdout.toString('utf8').trim();
}
