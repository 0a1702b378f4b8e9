// git/layer-git.ts: a bare repository of ours, one per project, that borrows the user's objects to write snapshots from.
// Invariant: no setting of the user's has a say but those that tell how text and links are stored; no filter ever runs.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../lib/files.ts';
import type { Repository } from './inspect.ts';
import { objectStores } from './object-stores.ts';
import { createStaging } from './staging.ts';

export interface LayerGit {
  readonly directory: string;
  /** For git's command line. */
  readonly settings: readonly string[];
}

const STORED = ['core.autocrlf', 'core.eol', 'core.symlinks'] as const;

/** How the files of a commit come out. A snapshot fits another one only if this is the same. */
export function storageSettings(repository: Repository): string[] {
  return STORED.flatMap((key) => {
    const value = repository.settings.get(key);
    return value === undefined ? [] : [`${key}=${value}`];
  });
}

export function openLayerGit(directory: string, repository: Repository, shown: readonly string[]): LayerGit {
  const alternates = join(directory, 'objects/info/alternates');
  if (!existsSync(alternates)) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    createStaging(directory, repository.objectFormat);
    // Line ends and encodings as .gitattributes says; a filter would be a program.
    writeFileSync(join(directory, 'info/attributes'), '* -filter\n');
  }
  const places = { root: repository.root, commonDir: repository.commonDir, shown };
  const lenders = objectStores(repository.commonDir, places)
    .map(({ path }) => `${path.includes('\n') ? JSON.stringify(path) : path}\n`)
    .join('');
  if (!existsSync(alternates) || readFileSync(alternates, 'utf8') !== lenders) replaceFile(alternates, lenders);
  return { directory, settings: storageSettings(repository).flatMap((setting) => ['-c', setting]) };
}
