// cli/after-run.ts: a sandbox has ended with changes: ask about them now, or say how to.
import { AgsError } from '../protocol/errors.ts';
import { readTask, type StoredTask } from '../store/tasks.ts';
import { openReview } from '../tasks/review.ts';
import { count } from './review-session.ts';
import type { Context } from './verb.ts';
import { riskyPatterns } from './verbs/review.ts';

/** The command has ended as it did, whatever becomes of its changes: they stay in the task. */
export async function afterRun(taskId: string, review: 'ask' | 'later', ctx: Context): Promise<void> {
  try {
    await askOrTell(taskId, review, ctx);
  } catch (error) {
    if (!(error instanceof AgsError)) throw error;
    const hint = error.hint === undefined ? '' : `     ${error.hint.replaceAll('\n', '\n     ')}\n`;
    ctx.stderr.write(
      `ags: ${error.message}\n${hint}ags: Nothing was taken; the changes are kept. Try again with: ags review ${taskId}\n`,
    );
  }
}

async function askOrTell(taskId: string, review: 'ask' | 'later', ctx: Context): Promise<void> {
  const task = await readTask(ctx.stateDir, taskId);
  if (task === null) return;
  const risky = await riskyPatterns(ctx, task.task.project);
  if (await settled(task, risky, review, ctx)) return;
  const { reviewOnTerminal } = await import('./review-session.ts');
  await reviewOnTerminal(task, risky, ctx);
}

/** True when nothing is left to ask: nothing really changed, or there is nobody to ask. */
async function settled(
  task: StoredTask,
  risky: readonly string[],
  review: 'ask' | 'later',
  ctx: Context,
): Promise<boolean> {
  using opened = await openReview(ctx.world, task, { risky });
  const { changes, ignored, refused } = opened.compared.changeSet;
  // Files that were touched, or written with what was in them before.
  if (changes.length === 0 && ignored.files === 0) {
    opened.finish();
    return true;
  }
  if (review === 'ask' && ctx.stdin.isTTY && ctx.stderr.isTTY) return false;
  const parts = [
    count(changes.length, 'file'),
    ...(ignored.files > 0 ? [count(ignored.files, 'ignored file')] : []),
    ...(refused.length > 0 ? [`${refused.length} that can never be taken`] : []),
  ];
  opened.finish();
  ctx.stderr.write(
    `ags: ${parts.join(', ')} changed; nothing was taken. Look at them with: ags review ${task.task.name}\n`,
  );
  return true;
}
