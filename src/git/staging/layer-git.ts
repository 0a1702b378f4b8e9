// git/staging/layer-git.ts: bare repositories of ours that borrow the user's objects: one per project to write snapshots, one for each run of checks.
// Invariant: only those settings of the user apply that say how text and links are stored. No filter ever runs, and only files on a
// branch of the user choose an encoding.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../../lib/files.ts';
import { stagingGit } from '../host-git.ts';
import type { Repository } from '../repository.ts';
import { objectStores } from '../object-stores.ts';
import { createStaging } from './staging.ts';

export interface LayerGit {
  readonly directory: string;
  /** Settings for git's command line. */
  readonly settings: readonly string[];
}

const STORED = ['core.autocrlf', 'core.eol', 'core.symlinks'] as const;

/** Settings that decide how the files of a commit are written. Snapshots can be combined only if these are equal. */
export function storageSettings(repository: Repository): string[] {
  return STORED.flatMap((key) => {
    const value = repository.settings.get(key);
    return value === undefined ? [] : [`${key}=${value}`];
  });
}

/** Keeps line ends as .gitattributes says, but disables filters, which are programs, and untrusted encodings, which choose code. */
export function setAttributes(directory: string, whose: 'trusted' | 'changed'): void {
  const text = whose === 'trusted' ? '* -filter\n' : '* -filter -working-tree-encoding\n';
  writeFileSync(join(directory, 'info/attributes'), text);
}

/** The commits of the user's branches and tags, without those of agents. */
export function usersTips({ refs, headRef, headCommit }: Repository): string[] {
  const named = refs.filter(({ name }) => !name.startsWith('refs/heads/ags/')).map(({ oid }) => oid);
  return headRef === null && headCommit !== null ? [...named, headCommit] : named;
}

/** True if a branch or tag of the user leads to the commit. */
export async function isUsersOwn(git: LayerGit, repository: Repository, commit: string): Promise<boolean> {
  const tips = usersTips(repository);
  if (tips.includes(commit)) return true;
  const input = Buffer.from([commit, ...tips.map((tip) => `^${tip}`), ''].join('\n'));
  const done = await stagingGit(git.directory, ['rev-list', '--max-count=1', '--stdin'], { input });
  return done.exitCode === 0 && done.stdout.length === 0;
}

export function openLayerGit(directory: string, repository: Repository, shown: readonly string[]): LayerGit {
  const alternates = join(directory, 'objects/info/alternates');
  if (!existsSync(alternates)) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    createStaging(directory, repository.objectFormat);
    setAttributes(directory, 'trusted');
  }
  const places = { root: repository.root, commonDir: repository.commonDir, shown };
  const lenders = objectStores(repository.commonDir, places)
    .map(({ path }) => `${path.includes('\n') ? JSON.stringify(path) : path}\n`)
    .join('');
  if (!existsSync(alternates) || readFileSync(alternates, 'utf8') !== lenders) replaceFile(alternates, lenders);
  return layerGit(directory, repository);
}

export function layerGit(directory: string, repository: Repository): LayerGit {
  return { directory, settings: storageSettings(repository).flatMap((setting) => ['-c', setting]) };
}

// Writes the tree of a trial merge, for one run of checks. The repository borrows objects from the task's staging and, through it,
// from the user.
// Invariant: an agent's files choose neither a program nor a converter of the C library: no filter runs, and only encodings that the user's
// own branch names apply.

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
