// merge/apply.ts: writes a sandbox's changes into the user's files: all requested ones or none.
import { AgsError } from '../protocol/errors.ts';
import type { Change } from '../protocol/changes.ts';
import { covers, select } from '../review/selection.ts';
import type { StoredTask } from '../store/tasks.ts';
import { asDirectory, selectionProblem } from './merge-tree.ts';
import { list } from '../results/move-files.ts';
import { openReview } from '../results/review.ts';
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
