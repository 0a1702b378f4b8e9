// git/staging/sample-repository.ts: creates a repository with one commit of the files in a directory, for attacks that need a real one.
// Invariant: it is made without templates, hooks or the user's settings.
import { join } from 'node:path';
import { checkoutGit, ISOLATED_ENV, stagingGit } from '../host-git.ts';
import { createRepository } from './new-repository.ts';

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
