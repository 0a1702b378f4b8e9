// cli/review/session.ts: a whole review on the terminal, from the first prompt to the summary.
import type { Change } from '../../protocol/changes.ts';
import { EXIT } from '../../protocol/errors.ts';
import type { AppliedChange } from '../../review/journal.ts';
import { visible } from '../../lib/sanitize.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { chooseChanges, shownOf } from '../../results/change-set.ts';
import { readBlob } from '../../git/staging/staging.ts';
import { openReview, type Review } from '../../results/review.ts';
import { LOOKING, meanwhile } from '../terminal/meanwhile.ts';
import { createPaint } from '../terminal/colour.ts';
import { count } from '../terminal/format.ts';
import type { Answers, Decision, Key } from './answers.ts';
import { askAboutChanges, askAboutIgnored, openKeys } from './prompt.ts';
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
    const { take, drop, edited, partly, open } = await sort(review, answers.decisions);
    const outcome = await review.take(take, edited, { whole: false, partly });
    review.drop(drop);
    if (asked.dropIgnored) review.dropIgnored();
    const { left } = review.finish();
    summary({ outcome, dropped: drop.length, left, open, task }, say);
    return failures(outcome).length > 0 ? EXIT.conflict : EXIT.done;
  } finally {
    keys.close();
  }
}

interface Sorted {
  readonly take: Change[];
  readonly drop: Change[];
  /** New content by path. */
  readonly edited: Map<string, Buffer>;
  /** Taken, but some of their parts stay for later. */
  readonly partly: Set<string>;
  readonly open: Change[];
}

/** The texts of files taken in part are built as for a partial merge. */
async function sort(review: Review, decisions: readonly (Decision | undefined)[]): Promise<Sorted> {
  const sorted: Sorted = { take: [], drop: [], edited: new Map(), partly: new Set(), open: [] };
  const parts = decisions.flatMap((one, n) => (one?.kind === 'part' ? [{ n, hunks: one.hunks }] : []));
  const shown = parts.length === 0 ? null : await shownOf(review.task, review.compared, null);
  const chosen = shown === null ? null : await chooseChanges(review.task, shown, { changes: shown.id, files: parts });
  for (const [n, change] of review.compared.changeSet.changes.entries()) {
    const decision = decisions[n];
    if (decision === undefined || decision.kind === 'later') sorted.open.push(change);
    else if (decision.kind === 'drop') sorted.drop.push(change);
    else if (decision.kind === 'part') {
      const part = chosen?.take.find(({ file }) => file.n === n);
      if (part?.change.after == null) throw new Error('a part without content');
      sorted.take.push(part.change);
      sorted.edited.set(change.path, await readBlob(review.task.paths.staging, part.change.after.oid));
      if (!decision.settled) sorted.partly.add(change.path);
    } else {
      sorted.take.push(change);
      if (decision.kind === 'edited') sorted.edited.set(change.path, decision.text);
    }
  }
  return sorted;
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
    const asking = { ctx, paint, key, purpose: 'review' } as const;
    let first = await askAboutChanges(review, changes, asking);
    let choice: Awaited<ReturnType<typeof askAboutIgnored>> = 'back';
    while (choice === 'back') {
      if (first === null || first.left || ignored.files === 0 || ignored.reviewed || task.run.ignoredDiscarded)
        return done(first);
      choice = await askAboutIgnored(review, ctx, paint, key);
      if (choice === 'back') first = await askAboutChanges(review, changes, asking, first.decisions);
    }
    if (choice === null || first === null) return done(null);
    if (choice !== 'review') return done(first, choice === 'discard');
    review[Symbol.dispose]();
    review = await meanwhile(ctx, LOOKING, openReview(ctx.host, task, { withIgnored: true, risky }));
    // An answer is valid only for the change that was shown; a change that differs now gets a new prompt.
    const shown = new Map(changes.map((change, n) => [keyOf(change), first?.decisions[n]]));
    const now = review.compared.changeSet.changes;
    const rest = now.filter((change) => !shown.has(keyOf(change)));
    const more = await askAboutChanges(review, rest, asking);
    if (more === null) return done(null);
    const decisions = now.map((change) =>
      shown.has(keyOf(change)) ? shown.get(keyOf(change)) : more.decisions[rest.indexOf(change)],
    );
    return done({ decisions, left: more.left });
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
