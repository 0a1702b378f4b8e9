// web/src/review/choice.ts: which files and hunks to merge. Pure.
// Invariant: files that can run code are never included by default, nor are files that the branch has already.
import type { ApiChanges, ApiFile } from '../../../src/protocol/api/review.ts';

/** By file number; a set holds hunk numbers. Files that are missing here are excluded. */
export type Choice = ReadonlyMap<number, 'all' | ReadonlySet<number>>;
export type Inclusion = 'all' | 'some' | 'none';

export const canRun = ({ lane }: ApiFile): boolean => lane !== 'inert';

/** Changes whenever the content or mode of the file changes. */
export const fingerprintOf = ({ oid, mode }: ApiFile): string => `${oid.after ?? 'gone'} ${mode.after ?? ''}`;

export function firstChoice(files: readonly ApiFile[]): Choice {
  return new Map(files.filter((file) => !canRun(file) && !file.merged).map(({ n }) => [n, 'all']));
}

/** The user's choices that differ from the default, by path. Each holds only for exactly this content of the file. */
export type KeptChoice = Readonly<
  Record<string, { readonly print: string; readonly taken: 'all' | 'none' | readonly number[] }>
>;

export function keptChoice(files: readonly ApiFile[], choice: Choice): KeptChoice {
  const usual = firstChoice(files);
  const kept = files.flatMap((file) => {
    const taken = choice.get(file.n);
    if (taken === usual.get(file.n)) return [];
    return [[file.path, { print: fingerprintOf(file), taken: taken instanceof Set ? [...taken] : (taken ?? 'none') }]];
  });
  return Object.fromEntries(kept) as KeptChoice;
}

/** `mayRun`: whether a file that can run code may be included. */
export function restoredChoice(
  files: readonly ApiFile[],
  kept: KeptChoice,
  mayRun: (file: ApiFile) => boolean,
): Choice {
  const choice = new Map(firstChoice(files));
  for (const file of files) {
    const one = kept[file.path];
    if (one === undefined || one.print !== fingerprintOf(file) || (canRun(file) && !mayRun(file))) continue;
    if (one.taken === 'none') choice.delete(file.n);
    else choice.set(file.n, one.taken === 'all' ? 'all' : new Set(one.taken));
  }
  return choice;
}

export function inclusionOf(choice: Choice, n: number): Inclusion {
  const taken = choice.get(n);
  return taken === undefined ? 'none' : taken === 'all' ? 'all' : 'some';
}

export function inclusionOfAll(choice: Choice, files: readonly ApiFile[]): Inclusion {
  const taken = new Set(files.map(({ n }) => inclusionOf(choice, n)));
  return taken.size === 1 ? ([...taken][0] ?? 'none') : taken.size === 0 ? 'none' : 'some';
}

export const includesHunk = (choice: Choice, n: number, hunk: number): boolean => {
  const taken = choice.get(n);
  return taken === 'all' || taken?.has(hunk) === true;
};

export function withFiles(choice: Choice, files: readonly ApiFile[], included: boolean): Choice {
  const next = new Map(choice);
  for (const { n } of files) {
    if (included) next.set(n, 'all');
    else next.delete(n);
  }
  return next;
}

export function withHunk(choice: Choice, n: number, hunk: number, of: number): Choice {
  const taken = choice.get(n);
  const hunks = new Set(taken === 'all' ? Array.from({ length: of }, (_, i) => i) : (taken ?? []));
  if (!hunks.delete(hunk)) hunks.add(hunk);
  const next = new Map(choice);
  if (hunks.size === 0) next.delete(n);
  else next.set(n, hunks.size === of ? 'all' : hunks);
  return next;
}

/** The selection as the API expects it. */
export function selectionOf(
  { id, files }: ApiChanges,
  choice: Choice,
): { changes: string; files: { n: number; hunks?: number[] }[] } {
  return {
    changes: id,
    files: files.flatMap(({ n }) => {
      const taken = choice.get(n);
      if (taken === undefined) return [];
      return [taken === 'all' ? { n } : { n, hunks: [...taken].sort((a, b) => a - b) }];
    }),
  };
}
