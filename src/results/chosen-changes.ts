// results/chosen-changes.ts: turns chosen numbers of files and hunks into changes that can be taken.
// Invariant: a choice refers to one change set by its id. ags itself builds the content of a partly chosen file from what was shown.
import { AgsError } from '../protocol/errors.ts';
import type { Change } from '../protocol/changes.ts';
import { diffBytes, readBlob, storeBlob } from '../git/staging/staging.ts';
import { readHunks, withHunks } from '../review/hunks.ts';
import type { StoredTask } from '../store/tasks.ts';
import { requireShown, type ShownChanges, type ShownFile } from './change-set.ts';

export interface Chosen {
  /** The id of the change set that was shown. */
  readonly changes: string;
  readonly files: readonly { readonly n: number; readonly hunks?: readonly number[] | undefined }[];
}

export interface ChosenChange {
  readonly file: ShownFile;
  /** With only some hunks chosen, its new content is neither the user's nor the agent's. */
  readonly change: Change;
  readonly partly: boolean;
}

export async function chooseChanges(
  stored: StoredTask,
  shown: ShownChanges,
  chosen: Chosen,
): Promise<{ take: ChosenChange[]; left: Change[] }> {
  requireShown(shown, chosen.changes, stored);
  const take: ChosenChange[] = [];
  for (const { n, hunks } of chosen.files) {
    const file = shown.files[n];
    if (file === undefined || take.some((one) => one.file.n === n))
      throw new AgsError('path.not-found', `There is no file with the number ${n}, or it was named twice.`);
    take.push(hunks === undefined ? { file, change: file.change, partly: false } : await part(stored, file, hunks));
  }
  const whole = new Set(take.filter(({ partly }) => !partly).map(({ file }) => file.n));
  return { take, left: shown.files.filter(({ n }) => !whole.has(n)).map(({ change }) => change) };
}

async function part(
  { paths: { staging } }: StoredTask,
  file: ShownFile,
  wanted: readonly number[],
): Promise<ChosenChange> {
  const { change } = file;
  const hunks = readHunks((await diffBytes(staging, file.before, file.after)).toString('latin1'));
  const chosen = new Set(wanted);
  if (chosen.size === 0 || [...chosen].some((n) => hunks[n] === undefined))
    throw new AgsError('path.not-found', `${change.path} has no such part.`, { hint: 'Look at it again.' });
  if ([change.before?.mode, change.after?.mode].includes('120000'))
    throw new AgsError('usage.invalid', `${change.path} is a link: it is taken whole or not at all.`);
  if (chosen.size === hunks.length) return { file, change, partly: false };
  const before = file.before === null ? '' : (await readBlob(staging, file.before)).toString('latin1');
  const bytes = Buffer.from(withHunks(before, hunks, chosen), 'latin1');
  const mode = change.after?.mode ?? change.before?.mode ?? '100644';
  const after = { mode, oid: await storeBlob(staging, bytes), bytes: bytes.length };
  // A deleted file of which only some lines were chosen stays, without those lines.
  return {
    file,
    change: { ...change, ...(change.after === null ? { kind: 'modified' as const } : {}), after },
    partly: true,
  };
}
