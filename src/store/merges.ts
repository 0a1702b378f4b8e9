// store/merges.ts: the merges of a repository, in order, and the one that is under way.
// Invariant: what is about to be done is on disk before the first thing changes, and is removed after the last.
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
  /** Everything of the task was taken. */
  readonly whole: boolean;
  /** Of a merge: all that the branch has of this run since, as a tree in the staging of the task. */
  readonly taken?: { readonly run: number; readonly tree: string };
  /** Of an undo: the number of the merge that it took back. */
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

/** One move of a branch, with the work tree in which it is checked out, if it is. */
export interface PendingMove {
  readonly record: MergeRecord;
  readonly workTree: { readonly path: string; readonly gitDir: string } | null;
  readonly index: readonly IndexStep[];
  /** The directory, of this move alone, with copies of the files that are being replaced. */
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

/** Of every repository that has something under way. */
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

/** A place for one move, or for what is computed for it; what is left of it is removed with the next `clearPending`. */
export function makePlace({ root }: MergePaths): string {
  return mkdtempSync(join(root, PLACE));
}

const PLACE = 'place-';

/** What is under way no longer is. Then nobody needs the places any more, nor what others were killed over. */
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

/** Merges that were not taken back. */
export function standing(merges: readonly NumberedMerge[]): NumberedMerge[] {
  const undone = new Set(merges.map((one) => one.undoes));
  return merges.filter((one) => one.kind === 'merge' && !undone.has(one.number));
}

/** The same one again, after a crash between this and the next step, is not added twice. */
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
    throw new AgsError('state.damaged', `${file} cannot be read.`, { hint: 'Look at it, then remove it.', cause });
  }
}
