// git/staging/check-git.ts: a bare repository of ours, for one run of checks, that writes the tree of a trial merge: it borrows from the staging of
// the task, and through it from the user.
// Invariant: what an agent wrote chooses no program and no code of the C library that reads its contents: no filter, and no encoding but
// one that the user's own branch has named.
import { join } from 'node:path';
import type { Repository } from '../inspect.ts';
import { layerGit, setAttributes, type LayerGit } from './layer-git.ts';
import { createStaging } from './staging.ts';
import { stagingGit } from '../host-git.ts';

export function createCheckGit(directory: string, staging: string, repository: Repository): LayerGit {
  createStaging(directory, repository.objectFormat, { bare: true, borrows: [join(staging, 'objects')] });
  setAttributes(directory, 'trusted');
  return layerGit(directory, repository);
}

/** What `commit` has and `without` has not, as a pack in `directory`; its path without an ending. */
export async function packCommit(staging: string, commit: string, without: string, directory: string): Promise<string> {
  const done = await stagingGit(staging, ['pack-objects', '--revs', '-q', '--threads=1', join(directory, 'pack')], {
    input: Buffer.from(`${commit}\n^${without}\n`),
  });
  if (done.exitCode !== 0) throw new Error(`git pack-objects failed in ${staging}: ${done.stderr.trim()}`);
  return join(directory, `pack-${done.stdout.toString('latin1').trim()}`);
}
