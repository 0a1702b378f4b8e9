// cli/review/after-run.ts: after a sandbox ended with changes, starts the review or says how to start it.
import { AgsError } from '../../protocol/errors.ts';
import { readTask } from '../../store/tasks.ts';
import { openReview, type Review, riskyPatterns } from '../../results/review.ts';
import { errorText, count } from '../terminal/format.ts';
import { LOOKING, meanwhile } from '../terminal/meanwhile.ts';
import type { Context } from '../verb.ts';

/** An error here does not change the exit status of the command; the changes stay in the task. */
export async function afterRun(taskId: string, review: 'ask' | 'later', ctx: Context): Promise<void> {
  try {
    await askOrTell(taskId, review, ctx);
  } catch (error) {
    if (!(error instanceof AgsError)) throw error;
    ctx.stderr.write(
      `${errorText(error)}ags: Nothing was taken; the changes are kept. Try again: ags review ${taskId}\n`,
    );
  }
}

async function askOrTell(taskId: string, review: 'ask' | 'later', ctx: Context): Promise<void> {
  const task = await readTask(ctx.stateDir, taskId);
  if (task === null) return;
  const risky = await riskyPatterns(ctx.host, task.task.project);
  const opened = await meanwhile(ctx, LOOKING, openReview(ctx.host, task, { risky }));
  if (review === 'ask' && ctx.stdin.isTTY && ctx.stderr.isTTY && isWorthAsking(opened)) {
    const { reviewOnTerminal } = await import('./session.ts');
    await reviewOnTerminal(task, risky, ctx, opened);
  } else {
    using _ = opened;
    tell(opened, ctx);
  }
}

// False if files were only touched, or rewritten with the same content.
function isWorthAsking(review: Review): boolean {
  const { changes, ignored } = review.compared.changeSet;
  return changes.length > 0 || ignored.files > 0;
}

function tell(review: Review, ctx: Context): void {
  review.finish();
  if (!isWorthAsking(review)) return;
  const { changes, ignored, refused } = review.compared.changeSet;
  const parts = [
    count(changes.length, 'file'),
    ...(ignored.files > 0 ? [count(ignored.files, 'ignored file')] : []),
    ...(refused.length > 0 ? [`${refused.length} that can never be taken`] : []),
  ];
  ctx.stderr.write(
    `ags: ${parts.join(', ')} changed; nothing was taken. Review them: ags review ${review.task.task.name}\n`,
  );
}
