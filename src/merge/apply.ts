// merge/apply.ts: writes a sandbox's changes into the user's files: all requested ones or none.
import { mergeText } from '../git/staging/merge-trees.ts';
import { readBlob } from '../git/staging/staging.ts';
import { AgsError } from '../protocol/errors.ts';
import type { Change } from '../protocol/changes.ts';
import { showChanges, shownOf, chooseChanges, type Chosen, type ChosenChange } from '../results/change-set.ts';
import { covers, select } from '../review/selection.ts';
import type { StoredTask } from '../store/tasks.ts';
import { asDirectory, selectionProblem } from './merge-tree.ts';
import { list } from '../results/move-files.ts';
import { openReview, riskyPatterns } from '../results/review.ts';
import type { HostContext } from '../run/host-context.ts';

export interface Applied {
  readonly taken: readonly Change[];
  /** If this is not empty, nothing was taken. */
  readonly failed: readonly { readonly path: string; readonly why: string }[];
  readonly risky: readonly Change[];
  /** How many changes are still undecided. */
  readonly left: number;
}

export async function applyTask(
  context: HostContext,
  stored: StoredTask,
  request: { paths: readonly string[]; risky: readonly string[]; riskyPatterns: readonly string[] },
): Promise<Applied> {
  using review = await openReview(context, stored, { risky: request.riskyPatterns });
  const { changes } = review.compared.changeSet;
  const paths = request.paths.map((path) => asDirectory(path, changes));
  const picked = select(changes, {
    accept: paths,
    acceptAll: paths.length === 0,
    discard: [],
    discardAll: false,
    risky: request.risky,
  });
  const [error] = picked.errors;
  if (error !== undefined) throw selectionProblem(error, stored);
  // With everything accepted, the remaining changes can run code or conflict.
  const asked = (change: Change): boolean => paths.length === 0 || paths.some((path) => covers(path, change));
  const conflicts = picked.left.filter((change) => change.conflict === 'conflicts' && asked(change));
  if (conflicts.length > 0)
    throw new AgsError(
      'project.changed',
      `Conflict: you and ${stored.task.name} both changed ${conflicts.length === 1 ? '1 file' : `${conflicts.length} files`}. Nothing was written:\n${list(conflicts.map(({ path }) => path))}`,
      {
        hint: `Take the others: ags apply ${stored.task.name} <paths>\nMerge both texts by hand: ags review ${stored.task.name}`,
        details: { files: conflicts.map(({ path }) => path) },
      },
    );
  const outcome = await review.take(picked.take, new Map(), { whole: true });
  const failed = outcome.flatMap(({ path, outcome: one }) =>
    one === 'applied' ? [] : [{ path, why: 'refused' in one ? one.refused : one.changed }],
  );
  const risky = picked.left.filter((change) => change.lane !== 'inert' && asked(change));
  return { taken: failed.length > 0 ? [] : picked.take, failed, risky, left: review.finish().left };
}

// The written text is what was shown, merged with the user's later edits. If one merge fails, nothing is written.
interface AppliedChosen {
  readonly files: readonly string[];
  /** Paths that are still undecided. */
  readonly left: readonly string[];
}

export async function applyChosen(
  context: HostContext,
  stored: StoredTask,
  chosen: Chosen,
  options: { dryRun: boolean },
): Promise<AppliedChosen> {
  // An agent's changes are shown against its base, but written over the user's current files.
  const before = stored.task.kind === 'agent' ? await showChanges(context, stored) : null;
  using review = await openReview(context, stored, { risky: await riskyPatterns(context, stored.task.project) });
  const shown = before ?? (await shownOf(stored, review.compared, null));
  const { take, left } = await chooseChanges(stored, shown, chosen);
  const edited = new Map<string, Buffer>();
  const changes: Change[] = [];
  const conflicts: string[] = [];
  for (const one of take) {
    const mine = review.compared.changeSet.changes.find(({ path }) => path === one.change.path);
    // The user's file already has this change.
    if (mine === undefined) continue;
    if (!one.partly) {
      if (mine.conflict === 'conflicts') conflicts.push(mine.path);
      changes.push(mine);
      continue;
    }
    const text = await partOver(stored, one, mine);
    if (text === null) conflicts.push(mine.path);
    else edited.set(mine.path, text);
    changes.push({ ...mine, after: one.change.after });
  }
  if (conflicts.length > 0) throw conflict(conflicts);
  const paths = changes.map(({ path }) => path);
  if (options.dryRun) return { files: paths, left: left.map(({ path }) => path) };
  const partly = new Set(take.filter((one) => one.partly).map(({ change }) => change.path));
  const outcome = await review.take(changes, edited, { whole: true, partly });
  const failed = outcome.flatMap(({ path, outcome: end }) =>
    end === 'applied' ? [] : [`${path}: ${'refused' in end ? end.refused : end.changed}`],
  );
  if (failed.length > 0)
    throw new AgsError('project.changed', `Nothing was written, because some files cannot be:\n${list(failed)}`);
  review.finish();
  return { files: paths, left: left.map(({ path }) => path) };
}

/** Merges some hunks of a file into the user's file; null if both changed the same lines. */
async function partOver({ paths }: StoredTask, { file, change }: ChosenChange, mine: Change): Promise<Buffer | null> {
  const read = (oid: string | null | undefined): Promise<Buffer> =>
    oid == null ? Promise.resolve(Buffer.alloc(0)) : readBlob(paths.staging, oid);
  const wanted = await read(change.after?.oid);
  if ((mine.before?.oid ?? null) === file.before) return wanted;
  const merged = await mergeText(paths.root, {
    base: await read(file.before),
    host: await read(mine.before?.oid),
    sandbox: wanted,
  });
  return merged?.clean === true ? merged.text : null;
}

function conflict(paths: readonly string[]): AgsError {
  return new AgsError(
    'project.changed',
    `Conflict: you and the task both changed ${paths.length === 1 ? '1 file' : `${paths.length} files`}. Nothing was written:\n${list(paths)}`,
    { hint: 'Leave them out, or merge both texts by hand.', details: { files: paths } },
  );
}
