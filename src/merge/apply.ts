// merge/apply.ts: what a sandbox changed into the user's files, all that was asked for or nothing.
import { AgsError } from '../protocol/errors.ts';
import type { Change } from '../protocol/changes.ts';
import { covers, select } from '../review/selection.ts';
import type { StoredTask } from '../store/tasks.ts';
import { asDirectory, selectionProblem } from './merge-tree.ts';
import { list } from '../results/move-files.ts';
import { openReview } from '../results/review.ts';
import type { World } from '../run/host-context.ts';

export interface Applied {
  readonly taken: readonly Change[];
  /** If there is one, nothing was taken. */
  readonly failed: readonly { readonly path: string; readonly why: string }[];
  readonly risky: readonly Change[];
  /** How many changes are not decided about yet. */
  readonly left: number;
}

export async function applyTask(
  world: World,
  stored: StoredTask,
  request: { paths: readonly string[]; risky: readonly string[]; riskyPatterns: readonly string[] },
): Promise<Applied> {
  using review = await openReview(world, stored, { risky: request.riskyPatterns });
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
  // With everything accepted, what is left can run code, or conflicts.
  const asked = (change: Change): boolean => paths.length === 0 || paths.some((path) => covers(path, change));
  const conflicts = picked.left.filter((change) => change.conflict === 'conflicts' && asked(change));
  if (conflicts.length > 0)
    throw new AgsError(
      'project.changed',
      `${conflicts.length === 1 ? 'A file' : `${conflicts.length} files`} changed in other ways on your side; nothing was written:\n${list(conflicts.map(({ path }) => path))}`,
      {
        hint: `Take the others: ags apply ${stored.task.name} <paths>\nPut both into one text: ags review ${stored.task.name}`,
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
