// transfer/import-journal.ts: records what an import or export makes outside the task's directory, so that an interrupted one can be
// rolled back.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { removeTree, replaceFile } from '../lib/files.ts';
import { moveRef, readRef } from '../git/owner-git.ts';
import type { TaskPaths } from '../store/layout.ts';

export interface ImportJournal {
  readonly branch: { readonly gitDir: string; readonly ref: string; readonly commit: string } | null;
  readonly networkLog: string | null;
  /** A repository or file that is not in its final place yet. */
  readonly part: string | null;
}

const NAME = 'import.json';

export function writeJournal({ root }: Pick<TaskPaths, 'root'>, journal: ImportJournal): void {
  replaceFile(join(root, NAME), JSON.stringify(journal), { durable: true });
}

export function dropJournal({ root }: Pick<TaskPaths, 'root'>): void {
  rmSync(join(root, NAME), { force: true });
}

/** Removes everything that the journal of an unfinished import or export names. A branch that was moved since stays. */
export async function takeBackImport(root: string): Promise<void> {
  const file = join(root, NAME);
  if (!existsSync(file)) return;
  const { branch, networkLog, part } = JSON.parse(readFileSync(file, 'utf8')) as ImportJournal;
  if (branch !== null && existsSync(branch.gitDir) && (await readRef(branch.gitDir, branch.ref)) === branch.commit)
    await moveRef(branch.gitDir, branch.ref, branch.commit, null, 'ags: not imported');
  if (networkLog !== null) rmSync(networkLog, { force: true });
  if (part !== null) removeTree(part);
}
