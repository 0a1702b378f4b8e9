// cli/review-session.ts: a whole review on the terminal, from the first question to the summary.
import type { AppliedChange } from '../review/journal.ts';
import { visible } from '../lib/sanitize.ts';
import type { StoredTask } from '../store/tasks.ts';
import { openReview, type Review } from '../tasks/review.ts';
import { createPaint } from './colour.ts';
import { askAboutChanges, askAboutIgnored, openKeys, takable } from './review-prompt.ts';
import type { Context } from './verb.ts';

export async function reviewOnTerminal(task: StoredTask, risky: readonly string[], ctx: Context): Promise<number> {
  const paint = createPaint(ctx.colour || ctx.stderr.isTTY);
  const say = (text: string): void => void ctx.stderr.write(`${text}\n`);
  const keys = openKeys(ctx);
  try {
    let withIgnored = false;
    for (;;) {
      using review = await openReview(ctx.world, task, { withIgnored, risky });
      showHeader(review, say);
      const ignored = review.compared.changeSet.ignored;
      const answers = await askAboutChanges(review, ctx, paint, keys.key);
      if (answers === null) {
        say(`Cancelled: nothing was changed. Come back with: ags review ${task.task.name}`);
        return 130;
      }
      const outcome = await review.take(answers.take, answers.edited);
      review.drop(answers.drop);
      const choice =
        ignored.files > 0 && !ignored.reviewed && !task.run.ignoredDiscarded
          ? await askAboutIgnored(review, ctx, paint, keys.key)
          : 'later';
      if (choice === 'discard') review.dropIgnored();
      const left = choice === 'review' ? 0 : review.finish().left;
      summary(
        {
          outcome,
          dropped: answers.drop.length,
          left,
          task,
          riskyLeft: review.compared.changeSet.changes.filter(
            (c) => !takable(c) && !answers.take.includes(c) && !answers.drop.includes(c),
          ).length,
        },
        say,
      );
      if (choice !== 'review') return failures(outcome).length > 0 ? 7 : 0;
      withIgnored = true;
    }
  } finally {
    keys.close();
  }
}

function showHeader(review: Review, say: (text: string) => void): void {
  const { changes, refused } = review.compared.changeSet;
  const risky = changes.filter((change) => change.lane !== 'inert').length;
  say(
    `${review.task.task.name}: ${count(changes.length, 'file')} changed${risky === 0 ? '' : `, ${risky} of them can run code and ${risky === 1 ? 'is' : 'are'} asked about first`}.`,
  );
  for (const one of refused) say(`  never taken: ${visible(one.path)} (${visible(one.reason)})`);
}

function failures(outcome: readonly AppliedChange[]): readonly AppliedChange[] {
  return outcome.filter((one) => one.outcome !== 'applied');
}

export function summary(
  input: { outcome: readonly AppliedChange[]; dropped: number; left: number; riskyLeft: number; task: StoredTask },
  say: (text: string) => void,
): void {
  const failed = failures(input.outcome);
  for (const one of failed) say(`  not taken: ${visible(one.path)}: ${visible(describe(one))}`);
  const parts = [`${input.outcome.length - failed.length} taken`, `${input.dropped} thrown away`, `${input.left} left`];
  say(`${parts.join(', ')}.${input.left > 0 ? ` Come back with: ags review ${input.task.task.name}` : ''}`);
  if (input.left > 0 && input.riskyLeft > 0)
    say('  Files that can run code are taken one by one only: y on the file, or --risky <path>.');
}

export function describe(one: AppliedChange): string {
  if (one.outcome === 'applied') return 'taken';
  return 'refused' in one.outcome ? one.outcome.refused : one.outcome.changed;
}

export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}
