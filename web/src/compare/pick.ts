// web/src/compare/pick.ts: which attempt each merged file comes from. Pure.
import type { ApiChanges, ApiFile } from '../../../src/protocol/api/review.ts';
import { canRun } from '../review/choice.ts';

export type Attempt = 'a' | 'b';
export const ATTEMPTS: readonly Attempt[] = ['a', 'b'];

/** A path that at least one attempt changed. */
export interface FilePair {
  readonly path: string;
  readonly a: ApiFile | null;
  readonly b: ApiFile | null;
  readonly same: boolean;
}

export type Picks = ReadonlyMap<string, Attempt>;

export function pairFiles(a: ApiChanges, b: ApiChanges): FilePair[] {
  const [inA, inB] = [byPath(a), byPath(b)];
  const both = [...new Set([...inA.keys(), ...inB.keys()])].sort().map((path): FilePair => {
    const [one, other] = [inA.get(path) ?? null, inB.get(path) ?? null];
    const same =
      one !== null && other !== null && one.oid.after === other.oid.after && one.mode.after === other.mode.after;
    return { path, a: one, b: other, same };
  });
  const risky = ({ a: one, b: other }: FilePair): boolean => [one, other].some((file) => file !== null && canRun(file));
  return [...both.filter(risky), ...both.filter((one) => !risky(one))];
}

const byPath = ({ files }: ApiChanges): Map<string, ApiFile> => new Map(files.map((file) => [file.path, file]));

/** All files of one attempt, except files that can run code and whose diff was not opened yet. */
export function allFrom(files: readonly FilePair[], attempt: Attempt, seen: (file: ApiFile) => boolean): Picks {
  return new Map(
    files.flatMap((both) => {
      const file = both[attempt];
      return file === null || (canRun(file) && !seen(file)) ? [] : [[both.path, attempt] as const];
    }),
  );
}

export function withPick(picks: Picks, path: string, attempt: Attempt | null): Picks {
  const next = new Map(picks);
  if (attempt === null) next.delete(path);
  else next.set(path, attempt);
  return next;
}

/** The files picked from one attempt, as the API expects them. */
export function selectionFrom(
  changes: ApiChanges,
  files: readonly FilePair[],
  picks: Picks,
  attempt: Attempt,
): { changes: string; files: { n: number }[] } {
  return {
    changes: changes.id,
    files: files.flatMap((both) => {
      const file = both[attempt];
      return file !== null && picks.get(both.path) === attempt ? [{ n: file.n }] : [];
    }),
  };
}
