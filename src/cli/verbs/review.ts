// cli/verbs/review.ts: `ags review [task]`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { SelectionError } from '../../review/selection.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'review the changes of a task, file by file',
  usage: 'review [task] [options]',
  takes: 1,
  about:
    'On a terminal, ags asks about every changed file; files that can run code on this machine or in CI come first.\nWith flags, or without a terminal, ags asks nothing and takes only files that you name.',
  examples: [
    'ags review',
    'ags review npm-test-4kd2 --accept-all',
    "ags review @ --accept 'src/**' --risky package.json",
    'ags review --discard-all',
    'ags review --json',
  ],
  options: {
    accept: {
      type: 'string',
      multiple: true,
      value: 'path',
      about: 'take this file, directory (ending in /) or pattern',
    },
    'accept-all': { type: 'boolean', about: 'take every file that cannot run code' },
    risky: { type: 'string', multiple: true, value: 'path', about: 'take this one file that can run code; exact path' },
    discard: { type: 'string', multiple: true, value: 'path', about: 'throw away this file, directory or pattern' },
    'discard-all': { type: 'boolean', about: 'throw away everything else' },
    ignored: {
      type: 'string',
      value: 'discard|review',
      about: 'throw away all git-ignored files, or review them like the others',
    },
    json: { type: 'boolean', about: 'print the changes or the result as JSON' },
  },
  async run(args, ctx) {
    const { findWork } = await import('../../agent-run/find-work.ts');
    const task = await findWork(ctx.host, args.positionals[0], {
      say: (text) => void ctx.stderr.write(`ags: ${text}\n`),
    });
    const { riskyPatterns } = await import('../../results/review.ts');
    const risky = await riskyPatterns(ctx.host, task.task.project);
    const flagged = ['accept', 'accept-all', 'risky', 'discard', 'discard-all', 'ignored'].some(
      (name) => args.values[name] !== undefined,
    );
    if (!flagged && args.values['json'] !== true && ctx.stdin.isTTY) {
      const { reviewOnTerminal } = await import('../review/session.ts');
      return reviewOnTerminal(task, risky, ctx);
    }
    return reviewByFlags(task, risky, args, ctx, flagged);
  },
};
export default verb;

async function reviewByFlags(
  task: import('../../store/tasks.ts').StoredTask,
  risky: readonly string[],
  args: Arguments,
  ctx: Context,
  flagged: boolean,
): Promise<number> {
  const { openReview } = await import('../../results/review.ts');
  const { select } = await import('../../review/selection.ts');
  const { count } = await import('../terminal/format.ts');
  const { describe, summary } = await import('../review/session.ts');
  const list = (name: string): string[] => (args.values[name] as string[] | undefined) ?? [];
  const ignored = args.values['ignored'];
  if (ignored !== undefined && ignored !== 'discard' && ignored !== 'review')
    throw new AgsError('usage.invalid', `--ignored is discard or review, not "${String(ignored)}".`);
  using review = await openReview(ctx.host, task, { withIgnored: ignored === 'review', risky });
  const { changeSet } = review.compared;
  const picked = select(changeSet.changes, {
    accept: list('accept'),
    acceptAll: args.values['accept-all'] === true,
    discard: list('discard'),
    discardAll: args.values['discard-all'] === true,
    risky: list('risky'),
  });
  if (picked.errors.length > 0) throw selectionError(picked.errors);
  const say = (text: string): void => void ctx.stderr.write(`${text}\n`);
  if (!flagged) {
    if (args.values['json'] === true) ctx.stdout.write(`${JSON.stringify({ task: task.task.name, ...changeSet })}\n`);
    else await showChanges(review, ctx, say, count);
    return EXIT.done;
  }
  const outcome = await review.take(picked.take);
  review.drop(picked.drop);
  if (ignored === 'discard' || args.values['discard-all'] === true) review.dropIgnored();
  const { left } = review.finish();
  const failed = outcome.filter((one) => one.outcome !== 'applied');
  if (args.values['json'] === true)
    ctx.stdout.write(
      `${JSON.stringify({ task: task.task.name, taken: outcome.filter((one) => one.outcome === 'applied').map((one) => one.path), failed: failed.map((one) => ({ path: one.path, reason: describe(one) })), dropped: picked.drop.map((c) => c.path), left })}\n`,
    );
  else
    summary(
      {
        outcome,
        dropped: picked.drop.length,
        left,
        open: picked.left,
        task,
      },
      say,
    );
  return failed.length > 0 ? EXIT.conflict : EXIT.done;
}

async function showChanges(
  review: import('../../results/review.ts').Review,
  ctx: Context,
  say: (text: string) => void,
  count: (n: number, noun: string) => string,
): Promise<void> {
  const { changeLine, reasonLines } = await import('../review/show-change.ts');
  const { createPaint } = await import('../terminal/colour.ts');
  const paint = createPaint(ctx.colour);
  const { changes, refused, ignored } = review.compared.changeSet;
  for (const change of changes)
    ctx.stdout.write(`${[changeLine(change, paint), ...reasonLines(change, paint)].join('\n')}\n`);
  say(
    `${count(changes.length, 'change')}${refused.length === 0 ? '' : `, ${count(refused.length, 'path')} that ${refused.length === 1 ? 'is' : 'are'} never taken`}${ignored.files === 0 || ignored.reviewed ? '' : `, ${count(ignored.files, 'ignored file')}`}. Nothing was taken: there is no terminal for a review.`,
  );
  say(`     Take them: ags review ${review.task.task.name} --accept-all`);
}

function selectionError(errors: readonly SelectionError[]): AgsError {
  const [first] = errors;
  const rest = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  switch (first?.problem) {
    case 'risky':
      return new AgsError('path.risky', `${first.path} can run code on this machine or in CI${rest}.`, {
        hint: `Review it, then name it: --risky ${first.path}`,
      });
    case 'conflict':
      return new AgsError('project.changed', `Conflict: ${first.path} also changed on your side${rest}.`, {
        hint: 'See both sides: ags diff. To combine them, press e in ags review on a terminal.',
      });
    case 'contradiction':
      return new AgsError('usage.invalid', `${first.path} cannot be both taken and thrown away${rest}.`);
    case 'not-found':
    case undefined:
      return new AgsError('path.not-found', `${first?.path ?? ''} is not among the changes${rest}.`, {
        hint: 'List them: ags review --json',
      });
  }
}
