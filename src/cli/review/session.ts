// cli/review/session.ts: a whole review on the terminal, from the first prompt to the summary.
import type { Change } from '../../protocol/changes.ts';
import { EXIT } from '../../protocol/errors.ts';
import type { AppliedChange } from '../../review/journal.ts';
import { visible } from '../../lib/sanitize.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { openReview, type Review } from '../../results/review.ts';
import { LOOKING, meanwhile } from '../terminal/meanwhile.ts';
import { createPaint } from '../terminal/colour.ts';
import { count } from '../terminal/format.ts';
import { askAboutChanges, askAboutIgnored, openKeys, type Answers, type Key } from './prompt.ts';
import type { Context } from '../verb.ts';

/** `opened` is a review of the task that is already open; this function closes it. */
export async function reviewOnTerminal(
  task: StoredTask,
  risky: readonly string[],
  ctx: Context,
  opened?: Review,
): Promise<number> {
  const say = (text: string): void => void ctx.stderr.write(`${text}\n`);
  const keys = openKeys(ctx);
  try {
    using asked = await askAboutAll(task, risky, ctx, keys.key, opened);
    if (asked.answers === null) {
      say(`Cancelled: nothing was changed. Resume: ags review ${task.task.name}`);
      return EXIT.cancelled;
    }
    const { review, answers } = asked;
    const outcome = await review.take(answers.take, answers.edited);
    review.drop(answers.drop);
    if (asked.dropIgnored) review.dropIgnored();
    const { left } = review.finish();
    const open = review.compared.changeSet.changes.filter(
      (c) => !answers.take.includes(c) && !answers.drop.includes(c),
    );
    summary({ outcome, dropped: answers.drop.length, left, open, task }, say);
    return failures(outcome).length > 0 ? EXIT.conflict : EXIT.done;
  } finally {
    keys.close();
  }
}

interface Asked extends Disposable {
  readonly review: Review;
  /** null: cancelled. */
  readonly answers: Answers | null;
  readonly dropIgnored: boolean;
}

/** All prompts, including the one about ignored files, come before the first file is written. */
async function askAboutAll(
  task: StoredTask,
  risky: readonly string[],
  ctx: Context,
  key: Key,
  opened?: Review,
): Promise<Asked> {
  const paint = createPaint(ctx.colour || (ctx.stderr.isTTY && ctx.env['NO_COLOR'] === undefined));
  let review = opened ?? (await meanwhile(ctx, LOOKING, openReview(ctx.host, task, { risky })));
  const done = (answers: Answers | null, dropIgnored = false): Asked => ({
    review,
    answers,
    dropIgnored,
    [Symbol.dispose]: () => review[Symbol.dispose](),
  });
  try {
    showHeader(review, (text) => void ctx.stderr.write(`${text}\n`));
    const { changes, ignored } = review.compared.changeSet;
    const first = await askAboutChanges(review, changes, ctx, paint, key);
    if (first === null || first.left || ignored.files === 0 || ignored.reviewed || task.run.ignoredDiscarded)
      return done(first);
    const choice = await askAboutIgnored(review, ctx, paint, key);
    if (choice === null) return done(null);
    if (choice !== 'review') return done(first, choice === 'discard');
    review[Symbol.dispose]();
    review = await meanwhile(ctx, LOOKING, openReview(ctx.host, task, { withIgnored: true, risky }));
    // An answer is valid only for the change that was shown; a change that differs now gets a new prompt.
    const shown = new Map(changes.map((change) => [keyOf(change), change]));
    const now = review.compared.changeSet.changes;
    const more = await askAboutChanges(
      review,
      now.filter((change) => !shown.has(keyOf(change))),
      ctx,
      paint,
      key,
    );
    if (more === null) return done(null);
    const again = (answered: readonly Change[]): Change[] =>
      now.filter((change) => answered.includes(shown.get(keyOf(change)) ?? change));
    return done({
      take: [...again(first.take), ...more.take],
      drop: [...again(first.drop), ...more.drop],
      edited: new Map([...first.edited, ...more.edited]),
      left: more.left,
    });
  } catch (error) {
    review[Symbol.dispose]();
    throw error;
  }
}

function keyOf({ path, from, before, after, conflict }: Change): string {
  return JSON.stringify([path, from, before, after, conflict]);
}

function showHeader(review: Review, say: (text: string) => void): void {
  const { changes, refused } = review.compared.changeSet;
  const risky = changes.filter((change) => change.lane !== 'inert').length;
  say(
    `${review.task.task.name}: ${count(changes.length, 'file')} changed${risky === 0 ? '' : `, ${risky} of them can run code and ${risky === 1 ? 'comes' : 'come'} first`}.`,
  );
  for (const one of refused)
    say(`  never taken: ${visible(one.path)} (${visible(one.reason.replace(/: never taken$/, ''))})`);
}

function failures(outcome: readonly AppliedChange[]): readonly AppliedChange[] {
  return outcome.filter((one) => one.outcome !== 'applied');
}

export function summary(
  input: {
    outcome: readonly AppliedChange[];
    dropped: number;
    left: number;
    /** Changes without a decision. */
    open: readonly Change[];
    task: StoredTask;
  },
  say: (text: string) => void,
): void {
  const failed = failures(input.outcome);
  for (const one of failed) say(`  not taken: ${visible(one.path)}: ${visible(describe(one))}`);
  const parts = [`${input.outcome.length - failed.length} taken`, `${input.dropped} thrown away`, `${input.left} left`];
  say(`${parts.join(', ')}.${input.left > 0 ? ` Review them: ags review ${input.task.task.name}` : ''}`);
  const conflicts = input.open.filter((change) => change.conflict === 'conflicts');
  if (conflicts.length > 0) say('  Files that changed on both sides need an edit: press e in a review on a terminal.');
  if (input.open.some((change) => change.lane !== 'inert' && !conflicts.includes(change)))
    say('  Take files that can run code one by one: y on the file, or --risky <path>.');
}

export function describe(one: AppliedChange): string {
  if (one.outcome === 'applied') return 'taken';
  return 'refused' in one.outcome ? one.outcome.refused : one.outcome.changed;
}
