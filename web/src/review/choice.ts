// web/src/review/choice.ts: which files and parts of files are to be taken. Pure.
// Invariant: what can run code is not chosen before its difference was opened.
import type { ApiChanges, ApiFile } from '../../../src/protocol/api/review.ts';

/** By number of the file; a set holds numbers of its parts. Who is not in it is left out. */
export type Choice = ReadonlyMap<number, 'all' | ReadonlySet<number>>;
export type Taken = 'all' | 'some' | 'none';

export const canRun = ({ lane }: ApiFile): boolean => lane !== 'inert';

/** Of exactly this content: another content is another print. */
export const printOf = ({ oid, mode }: ApiFile): string => `${oid.after ?? 'gone'} ${mode.after ?? ''}`;

export function firstChoice(files: readonly ApiFile[]): Choice {
  return new Map(files.filter((file) => !canRun(file)).map(({ n }) => [n, 'all']));
}

export function takenOf(choice: Choice, n: number): Taken {
  const taken = choice.get(n);
  return taken === undefined ? 'none' : taken === 'all' ? 'all' : 'some';
}

export function takenOfAll(choice: Choice, files: readonly ApiFile[]): Taken {
  const taken = new Set(files.map(({ n }) => takenOf(choice, n)));
  return taken.size === 1 ? ([...taken][0] ?? 'none') : taken.size === 0 ? 'none' : 'some';
}

export const takesHunk = (choice: Choice, n: number, hunk: number): boolean => {
  const taken = choice.get(n);
  return taken === 'all' || taken?.has(hunk) === true;
};

export function withFiles(choice: Choice, files: readonly ApiFile[], take: boolean): Choice {
  const next = new Map(choice);
  for (const { n } of files) {
    if (take) next.set(n, 'all');
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

/** As the server takes it. */
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
