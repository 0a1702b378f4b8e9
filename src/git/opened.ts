// git/opened.ts: writes the files of a commit into a new directory, with a repository of ours that borrows the user's objects.
// Invariant: nothing in the commit affects how it is written: no filter, no encoding, no hook, no setting.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stagingGit } from './host-git.ts';
import type { Repository } from './repository.ts';
import { setAttributes, storageSettings } from './staging/layer-git.ts';
import { writeWhole } from './staging/snapshot.ts';
import { createStaging } from './staging/staging.ts';

export async function writeOpened(
  repository: Repository,
  stores: readonly string[],
  commit: string,
  /** "refs/heads/ags/task" */
  ref: string,
  directory: string,
): Promise<void> {
  const gitDir = join(directory, '.git');
  mkdirSync(gitDir, { recursive: true, mode: 0o700 });
  createStaging(gitDir, repository.objectFormat, { bare: true, borrows: stores });
  setAttributes(gitDir, 'changed');
  const settings = storageSettings(repository).flatMap((setting) => ['-c', setting]);
  await writeWhole({ directory: gitDir, settings }, commit, { files: directory, index: join(gitDir, 'index') });
  mkdirSync(dirname(join(gitDir, ref)), { recursive: true });
  writeFileSync(join(gitDir, ref), `${commit}\n`);
  writeFileSync(join(gitDir, 'HEAD'), `ref: ${ref}\n`);
  // The user sends work back by hand: git push origin.
  const set = (key: string, value: string) =>
    stagingGit(gitDir, ['config', '--file', join(gitDir, 'config'), key, value]);
  await set('remote.origin.url', repository.root);
  await set('remote.origin.fetch', '+refs/heads/*:refs/remotes/origin/*');
  for (const setting of storageSettings(repository)) {
    const [key = '', value = ''] = setting.split('=');
    await set(key, value);
  }
  await set('core.bare', 'false');
}

/** True if this path is equal in both commits, or in neither. */
export async function isSame(gitDir: string, path: string, one: string, other: string): Promise<boolean> {
  const done = await stagingGit(gitDir, ['diff-tree', '--quiet', '--no-ext-diff', one, other, '--', path]);
  return done.exitCode === 0;
}
