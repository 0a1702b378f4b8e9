// cli/after-run.ts: a sandbox has ended with changes: ask about them now, or say how to.
import { readTask } from '../store/tasks.ts';
import { openReview } from '../tasks/review.ts';
import { count } from './review-session.ts';
import type { Context } from './verb.ts';
import { riskyPatterns } from './verbs/review.ts';

export async function afterRun(taskId: string, review: 'ask' | 'later', ctx: Context): Promise<void> {
  const task = await readTask(ctx.stateDir, taskId);
  if (task === null) return;
  const risky = await riskyPatterns(ctx, task.task.project);
  if (review === 'ask' && ctx.stdin.isTTY && ctx.stderr.isTTY) {
    const { reviewOnTerminal } = await import('./review-session.ts');
    await reviewOnTerminal(task, risky, ctx);
    return;
  }
  using opened = await openReview(ctx.world, task, { risky });
  const { changes, ignored, refused } = opened.compared.changeSet;
  if (changes.length === 0 && ignored.files === 0) {
    opened.finish();
    return;
  }
  const parts = [count(changes.length, 'file'), ...(ignored.files > 0 ? [count(ignored.files, 'ignored file')] : []), ...(refused.length > 0 ? [`${refused.length} that can never be taken`] : [])];
  opened.finish();
  ctx.stderr.write(`ags: ${parts.join(', ')} changed; nothing was taken. Look at them with: ags review ${taskId}\n`);
}
