// results/change-set.ts: the changes of a task as a reviewer sees them, under an id that stands for exactly this content.
// It also turns a reviewer's choice into changes, counts risky files, and finds the merge base.
// Invariant: files are named by their number in the set. A later decision carries the id and is refused if the id has changed.
import { createHash } from 'node:crypto';
import type { Repository } from '../git/repository.ts';
import { isAncestor } from '../git/staging/brought.ts';
import { AgsError } from '../protocol/errors.ts';
import type { Change } from '../protocol/changes.ts';
import {
  countPairs,
  diffBytes,
  diffTrees,
  isBlob,
  readBlobs,
  storeBlob,
  treeOf,
  readBlob,
  isTree,
} from '../git/staging/staging.ts';
import { readRef } from '../git/owner-git.ts';
import { mergeTrees } from '../git/staging/merge-trees.ts';
import { readHunks, type Hunk, withHunks } from '../review/hunks.ts';
import { mergePaths, readMerges, standing } from '../store/merges.ts';
import type { StoredTask } from '../store/tasks.ts';
import { captureChanges, readCapture, type AgentResult } from './capture.ts';
import { compareWithBase, type Compared } from './changes.ts';
import { repositoryAt } from '../run/project.ts';
import { openReview, riskyPatterns } from './review.ts';
import type { HostContext } from '../run/host-context.ts';

export interface ShownFile {
  readonly n: number;
  readonly change: Change;
  /** Blobs in staging. For a file that both sides changed, `after` is the merged text. */
  readonly before: string | null;
  readonly after: string | null;
}

export interface ShownChanges {
  readonly id: string;
  readonly compared: Compared;
  readonly files: readonly ShownFile[];
  /** null for a command, whose changes are compared with the user's files. */
  readonly agent: AgentResult | null;
}

export async function showChanges(context: HostContext, stored: StoredTask): Promise<ShownChanges> {
  const risky = await riskyPatterns(context, stored.task.project);
  if (stored.task.kind !== 'agent') {
    using review = await openReview(context, stored, { risky });
    return await shownOf(stored, review.compared, null);
  }
  const capture = await captureChanges(context, stored, { withIgnored: false });
  return shownOf(stored, await compareWithBase(context, stored, capture, risky), capture.agent ?? null);
}

export async function shownOf(
  { paths: { staging } }: Pick<StoredTask, 'paths'>,
  compared: Compared,
  agent: AgentResult | null,
): Promise<ShownChanges> {
  const files: ShownFile[] = [];
  for (const [n, change] of compared.changeSet.changes.entries()) {
    const merged = compared.merged.get(change.path);
    files.push({
      n,
      change,
      before: change.before?.oid ?? null,
      after: merged === undefined ? (change.after?.oid ?? null) : await storeBlob(staging, merged),
    });
  }
  const content = files.map(({ change, before, after }) => [
    change.path,
    change.from ?? null,
    change.lane,
    change.before?.mode ?? null,
    before,
    change.after?.mode ?? null,
    after,
  ]);
  const id = createHash('sha256')
    .update(JSON.stringify([compared.changeSet.id, content]))
    .digest('hex')
    .slice(0, 40);
  return { id, compared, files, agent };
}

export function requireShown(shown: ShownChanges, id: string, { task }: StoredTask): void {
  if (shown.id === id) return;
  throw new AgsError('project.changed', `${task.name} has changed since you looked at it; nothing was done.`, {
    hint: 'Look at it again.',
    details: { changes: shown.id },
  });
}

export function countShown({ paths }: StoredTask, { files }: ShownChanges): ReturnType<typeof countPairs> {
  return countPairs(paths.staging, files);
}

/** The branch that the task would be merged into, the files that conflict there, and those that an earlier merge took. */
export async function mergeOutlook(
  context: HostContext,
  stored: StoredTask,
  { agent }: ShownChanges,
): Promise<{
  branch: string | null;
  commit: string | null;
  conflicts: ReadonlySet<string>;
  /** Whether an earlier merge took this path whole. */
  isMerged(path: string): boolean;
}> {
  const { task, paths } = stored;
  const ref = task.goal?.baseRef ?? null;
  const none = {
    branch: ref?.replace('refs/heads/', '') ?? null,
    commit: null,
    conflicts: new Set<string>(),
    isMerged: () => false,
  };
  const repository =
    ref === null || agent === null ? null : await repositoryAt(context, task.project).catch(() => null);
  if (repository === null || ref === null || agent === null) return none;
  const commit = await readRef(repository.commonDir, ref);
  if (commit === null) return none;
  if (commit === agent.base) return { ...none, commit };
  const base = await mergeBase(context, stored, { base: agent.base, repository, ref, tip: commit });
  const ours = await treeOf(paths.staging, commit);
  const merged = await mergeTrees(paths.staging, { base, ours, theirs: agent.tree });
  const conflicts = new Set('conflicts' in merged ? merged.conflicts : []);
  if (base === (await treeOf(paths.staging, agent.base))) return { ...none, commit, conflicts };
  const rest = await diffTrees(paths.staging, base, agent.tree, { renames: false });
  const open = new Set(rest.map(({ path }) => path));
  return { ...none, commit, conflicts, isMerged: (path) => !open.has(path) };
}

/** The content that the user has viewed, and the content now. null if the viewed content no longer exists. */
export async function sinceViewed(
  { paths }: StoredTask,
  file: ShownFile,
  viewed: string,
): Promise<Pick<ShownFile, 'before' | 'after'> | null> {
  const known = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(viewed) && (await isBlob(paths.staging, viewed));
  return known ? { before: viewed, after: file.after } : null;
}

export interface FileText {
  readonly before: Buffer | null;
  readonly after: Buffer | null;
  /** The diff as bytes, from the first "@@" on. */
  readonly diff: Buffer;
  readonly hunks: readonly Hunk[];
  /** Why there is no text; null if there is. */
  readonly why: string | null;
}

/** Reads whole texts up to `maxBytes` each, and a diff up to four times that. A `hideSpace` diff is for reading only: hunks are never chosen from it. */
export async function readFileText(
  { paths }: StoredTask,
  file: Pick<ShownFile, 'before' | 'after'>,
  maxBytes: number,
  options: { hideSpace?: boolean } = {},
): Promise<FileText> {
  const { staging } = paths;
  const sides = [file.before, file.after].flatMap((oid) => oid ?? []);
  const blobs = await readBlobs(staging, sides, 4 * maxBytes);
  const bytesOf = (oid: string | null): Buffer | null => (oid === null ? null : (blobs.get(oid) ?? null));
  const nothing = { before: null, after: null, diff: Buffer.alloc(0), hunks: [] };
  if (sides.some((oid) => bytesOf(oid) === null)) return { ...nothing, why: 'It is too large to be shown.' };
  if (sides.some((oid) => bytesOf(oid)?.subarray(0, 8000).includes(0) === true))
    return { ...nothing, why: 'It is not text.' };
  const diff =
    file.before === file.after ? Buffer.alloc(0) : await diffBytes(staging, file.before, file.after, options);
  const large = sides.some((oid) => (bytesOf(oid)?.length ?? 0) > maxBytes);
  return {
    before: large ? null : bytesOf(file.before),
    after: large ? null : bytesOf(file.after),
    diff,
    hunks: readHunks(diff.toString('latin1')),
    why: large ? 'It is large: only what changed is shown.' : null,
  };
}

// A choice refers to one change set by its id. ags itself builds the content of a partly chosen file from what was shown.
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

/** A review reads every file; the end of a run does not wait for more files than this. */
const MOST_FILES = 2000;

/** Returns null if there are too many files to count. */
export async function countRisky(context: HostContext, stored: StoredTask, files: number): Promise<number | null> {
  const capture = files > MOST_FILES ? null : readCapture(stored);
  if (capture === null) return null;
  const patterns = await riskyPatterns(context, stored.task.project);
  const { changeSet } = await compareWithBase(context, stored, capture, patterns);
  return changeSet.changes.filter(({ lane }) => lane !== 'inert').length;
}

// The merge base of a task's work is the commit it began with or, after an earlier merge into the branch, what that merge took. Without this, an agent that continues after a merge would conflict with its own work.
// Invariant: an earlier merge counts only if it was not undone, its commit is part of the branch, and it came from the same run of the same
// task (task names are reused). Otherwise this merge would remove what the earlier one brought, or omit what was removed since.

/** Returns a tree in the task's staging. `tip` is the commit of the branch `ref`. */
export async function mergeBase(
  context: HostContext,
  { task, run, paths: { staging } }: StoredTask,
  into: { base: string; repository: Repository; ref: string; tip: string },
): Promise<string> {
  const { base, ref, tip, repository } = into;
  const earlier = standing(readMerges(mergePaths(context.stateDir, repository.commonDir))).findLast(
    (one) =>
      one.task === task.id &&
      one.ref === ref &&
      one.taken?.run === (run.number ?? 1) &&
      Date.parse(one.at) >= Date.parse(task.createdAt),
  );
  const counts =
    earlier?.taken !== undefined &&
    (await isTree(staging, earlier.taken.tree)) &&
    (await isAncestor(staging, earlier.to, tip));
  return counts ? earlier.taken.tree : treeOf(staging, base);
}
