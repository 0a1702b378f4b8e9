// cli/review/open-changes.ts: the changes of a task, to be read only: for a command, compared with the user's current files; for an
// agent, with the commit it started from.
import { captureChanges } from '../../results/capture.ts';
import { compareWithBase } from '../../results/changes.ts';
import { openReview, type Review, riskyPatterns } from '../../results/review.ts';
import type { StoredTask } from '../../store/tasks.ts';
import type { Context } from '../verb.ts';

export type OpenedChanges = Pick<Review, 'task' | 'compared'> & Disposable;

export async function openChanges(ctx: Pick<Context, 'host'>, task: StoredTask): Promise<OpenedChanges> {
  const risky = await riskyPatterns(ctx.host, task.task.project);
  if (task.task.kind !== 'agent') return openReview(ctx.host, task, { risky });
  const capture = await captureChanges(ctx.host, task, { withIgnored: false });
  return {
    task,
    compared: await compareWithBase(ctx.host, task, capture, risky),
    [Symbol.dispose]: () => undefined,
  };
}
