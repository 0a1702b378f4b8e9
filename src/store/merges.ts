// store/merges.ts: the merges of a repository, in order, and the pending one.
// Invariant: a pending merge is on disk before its first change, and is removed after its last.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { replaceFile } from '../lib/files.ts';

export interface MergeRecord {
  readonly version: 1;
  readonly kind: 'merge' | 'undo';
  readonly task: string;
  /** The git directory that all work trees share. */
  readonly repository: string;
  readonly ref: string;
  readonly from: string;
  readonly to: string;
  readonly at: string;
  /** The merge took everything of the task. */
  readonly whole: boolean;
  /** For a merge: how many changed files it took, of how many. Older records lack them. */
  readonly files?: number;
  readonly of?: number;
  /** For a merge: everything of this run that the branch now has, as a tree in the staging repository of the task. */
  readonly taken?: { readonly run: number; readonly tree: string };
  /** For an undo: the number of the merge it undoes. */
  readonly undoes?: number;
}

export interface NumberedMerge extends MergeRecord {
  readonly number: number;
}

export interface IndexStep {
  readonly path: string;
  readonly before: { readonly mode: string; readonly oid: string } | null;
  readonly after: { readonly mode: string; readonly oid: string } | null;
}

/** One move of a branch, with the work tree that has it checked out, if any. */
export interface PendingMove {
  readonly record: MergeRecord;
  readonly workTree: { readonly path: string; readonly gitDir: string } | null;
  readonly index: readonly IndexStep[];
  /** A directory, for this move only, with copies of the files to be replaced. */
  readonly files: string;
}

export interface MergePaths {
  readonly root: string;
  readonly lock: string;
  readonly pending: string;
}

export function mergesDir(stateDir: string): string {
  return join(stateDir, 'merges');
}

export function mergePaths(stateDir: string, commonDir: string): MergePaths {
  const key = createHash('sha256').update(commonDir).digest('hex').slice(0, 16);
  return mergesAt(join(mergesDir(stateDir), key));
}

/** Every repository with a pending merge. */
export function pendingMerges(stateDir: string): MergePaths[] {
  const dir = mergesDir(stateDir);
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .map((name) => mergesAt(join(dir, name)))
    .filter(({ pending }) => existsSync(pending));
}

export function mergesAt(root: string): MergePaths {
  return {
    root,
    lock: join(root, 'lock'),
    pending: join(root, 'pending.json'),
  };
}

export function makeMergeDir(paths: MergePaths): void {
  mkdirSync(paths.root, { recursive: true, mode: 0o700 });
}

export function readPending({ pending }: MergePaths): PendingMove | null {
  return existsSync(pending) ? (read(pending) as PendingMove) : null;
}

export function writePending({ pending }: MergePaths, move: PendingMove): void {
  replaceFile(pending, JSON.stringify(move), { durable: true });
}

/** A directory for one move, or for computing it; the next `clearPending` removes leftovers. */
export function makePlace({ root }: MergePaths): string {
  return mkdtempSync(join(root, PLACE));
}

const PLACE = 'place-';

/** Ends the pending merge and removes all move directories, also those of killed processes. */
export function clearPending({ root, pending }: MergePaths): void {
  rmSync(pending, { force: true });
  for (const name of readdirSync(root))
    if (name.startsWith(PLACE) || name.endsWith('.tmp')) rmSync(join(root, name), { recursive: true, force: true });
}

/** Oldest first. */
export function readMerges({ root }: MergePaths): NumberedMerge[] {
  if (!existsSync(root)) return [];
  return readdirSync(root)
    .filter((name) => /^\d{6}\.json$/.test(name))
    .toSorted()
    .map((name) => ({ ...(read(join(root, name)) as MergeRecord), number: Number.parseInt(name, 10) }));
}

/** Merges that were not undone. */
export function standing(merges: readonly NumberedMerge[]): NumberedMerge[] {
  const undone = new Set(merges.map((one) => one.undoes));
  return merges.filter((one) => one.kind === 'merge' && !undone.has(one.number));
}

/** Ignores a repeated record: a crash can come between this step and the next. */
export function addMerge(paths: MergePaths, record: MergeRecord): void {
  const last = readMerges(paths).at(-1);
  if (last?.at === record.at && last.to === record.to && last.ref === record.ref) return;
  const number = (last?.number ?? 0) + 1;
  replaceFile(join(paths.root, `${String(number).padStart(6, '0')}.json`), JSON.stringify(record), { durable: true });
}

function read(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new AgsError('state.damaged', `${file} cannot be read.`, {
      hint: `Inspect it, then remove it: rm ${file}`,
      cause,
    });
  }
}
