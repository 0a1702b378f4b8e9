// git/staging/check-git.ts: a bare repository of ours that writes the tree of a trial merge, for one run of checks. It borrows objects from
// the task's staging and, through it, from the user.
// Invariant: an agent's files choose neither a program nor a converter of the C library: no filter runs, and only encodings that the user's
// own branch names apply.
import { join } from 'node:path';
import type { Repository } from '../repository.ts';
import { layerGit, setAttributes, type LayerGit } from './layer-git.ts';
import { createStaging } from './staging.ts';
import { stagingGit } from '../host-git.ts';

export function createCheckGit(directory: string, staging: string, repository: Repository): LayerGit {
  createStaging(directory, repository.objectFormat, { bare: true, borrows: [join(staging, 'objects')] });
  setAttributes(directory, 'trusted');
  return layerGit(directory, repository);
}

/** Packs the objects of `commit` that `without` lacks into `directory`. Returns the path of the pack without its extension. */
export async function packCommit(staging: string, commit: string, without: string, directory: string): Promise<string> {
  const done = await stagingGit(staging, ['pack-objects', '--revs', '-q', '--threads=1', join(directory, 'pack')], {
    input: Buffer.from(`${commit}\n^${without}\n`),
  });
  if (done.exitCode !== 0) throw new Error(`git pack-objects failed in ${staging}: ${done.stderr.trim()}`);
  return join(directory, `pack-${done.stdout.toString('latin1').trim()}`);
}
