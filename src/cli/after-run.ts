// cli/after-run.ts: a sandbox has ended with changes: ask about them now, or say how to.
import type { Context } from './verb.ts';

export async function afterRun(taskId: string, review: 'ask' | 'later', ctx: Context): Promise<void> {
  ctx.stderr.write(`ags: ${taskId} changed files (${review}).\n`);
}
