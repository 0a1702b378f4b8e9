// cli/verbs/merge.ts: `ags merge [task] [paths...]`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { StoredTask } from '../../store/tasks.ts';
import type { Merge, MergePlan, MergeRequest } from '../../merge/merge.ts';
import type { MergeRules } from '../../merge/checks.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'merge the work of an agent into a branch of yours',
  usage: 'merge [task] [paths...]',
  takes: 'any',
  about:
    'Adds one commit to the branch that the task started from, or to another branch (--into). If that branch is checked out, the changed files are written too; if one of them has uncommitted changes, nothing happens.\nFiles that can run code on this machine or in CI are left out unless you name them. To undo: ags undo',
  examples: [
    'ags merge fix-login-4kd2',
    'ags merge @ src/ docs/readme.md',
    'ags merge @ --risky package.json --into develop',
    'ags merge @ --keep-commits',
    'ags merge @ --check',
    'ags merge @ --dry-run',
  ],
  options: {
    into: { type: 'string', value: 'branch', about: 'target branch instead of the one the task started from' },
    squash: { type: 'boolean', about: 'make one commit (the default)' },
    'keep-commits': { type: 'boolean', about: "keep the agent's own commits" },
    message: { type: 'string', short: 'm', value: 'text', about: 'the commit message' },
    risky: { type: 'string', multiple: true, value: 'path', about: 'take this one file that can run code; exact path' },
    check: { type: 'boolean', about: 'run the checks first (ags check) and merge only if all pass' },
    'dry-run': { type: 'boolean', about: 'print what would be merged, and change nothing' },
    yes: { type: 'boolean', short: 'y', about: 'do not ask' },
    json: { type: 'boolean', about: 'print the result as JSON' },
  },
  async run(args, ctx) {
    const { findWork } = await import('../../agent-run/find-work.ts');
    const { mergeRules } = await import('../../merge/checks.ts');
    const { riskyPatterns } = await import('../../results/review.ts');
    const { meanwhile } = await import('../terminal/meanwhile.ts');
    const { values } = args;
    if (values['squash'] === true && values['keep-commits'] === true)
      throw new AgsError('usage.invalid', '--squash and --keep-commits exclude each other.');
    const task = await findWork(ctx.host, args.positionals[0], {
      say: (text) => void ctx.stderr.write(`ags: ${text}\n`),
    });
    const { name } = task.task;
    const request = {
      paths: args.positionals.slice(1),
      risky: (values['risky'] as string[] | undefined) ?? [],
      riskyPatterns: await riskyPatterns(ctx.host, task.task.project),
      into: values['into'] as string | undefined,
      keepCommits: values['keep-commits'] === true,
      message: values['message'] as string | undefined,
    };
    const dry = values['dry-run'] === true;
    const rules = await mergeRules(ctx.host, task.task.project);
    const check = !dry && (values['check'] === true || rules.required);
    const opened = await openChecked(ctx, task, request, { check, rules, quiet: values['json'] === true });
    if (typeof opened === 'number') return opened;
    using merge = opened;
    const { plan } = merge;
    const ask = !dry && values['yes'] !== true && values['json'] !== true && ctx.terminal.stdin && ctx.terminal.stderr;
    if (plan.to !== null && (dry || ask)) await show(plan, task, rules, ctx);
    if (plan.to !== null && ask && !/^y(es)?$/i.test(await ctx.ask('Merge? [y/N] '))) {
      ctx.stderr.write('Nothing was merged.\n');
      return EXIT.cancelled;
    }
    if (!dry) await meanwhile(ctx, `Merging ${name}`, merge.carryOut());
    if (values['json'] === true)
      ctx.stdout.write(
        `${JSON.stringify({ task: name, ref: plan.ref, from: plan.from, to: plan.to, merged: !dry && plan.to !== null, whole: plan.whole, files: plan.take.map((change) => change.path), risky: plan.risky.map((change) => change.path) })}\n`,
      );
    else await tell(plan, name, dry, ctx);
    return leavesAllOut(plan) ? EXIT.failed : EXIT.done;
  },
};
export default verb;

/** With `check`, returns only after the checks passed for exactly the merged tree. A number is the exit status of failed checks. */
async function openChecked(
  ctx: Context,
  task: StoredTask,
  request: MergeRequest,
  { check, rules, quiet }: { check: boolean; rules: MergeRules; quiet: boolean },
): Promise<Merge | number> {
  const { openMerge } = await import('../../merge/merge.ts');
  const { havePassed } = await import('../../merge/checks.ts');
  const { LOOKING, meanwhile } = await import('../terminal/meanwhile.ts');
  const first = await meanwhile(ctx, LOOKING, openMerge(ctx.host, task, request));
  const { tree, to } = first.plan;
  if (!check || to === null || havePassed(task, tree, rules.checks)) return first;
  // Releases the lock, so that others can merge while the checks run.
  first[Symbol.dispose]();
  const { runChecksHere, tellChecks } = await import('../review/run-checks.ts');
  const file = await runChecksHere(ctx, task, { ...request, commands: [] }, { quiet });
  if (!quiet || file.state !== 'passed') await tellChecks(ctx, task, file, null);
  if (file.state !== 'passed') {
    ctx.stderr.write('Nothing was merged.\n');
    return file.state === 'failed' ? EXIT.checks : EXIT.cancelled;
  }
  const merge = await meanwhile(ctx, LOOKING, openMerge(ctx.host, task, request));
  if (merge.plan.tree === file.tree) return merge;
  merge[Symbol.dispose]();
  throw new AgsError('project.changed', 'The branch moved while the checks ran; nothing was merged.', {
    hint: 'Run the same command again.',
  });
}

async function show(plan: MergePlan, task: StoredTask, rules: MergeRules, ctx: Context): Promise<void> {
  const { checksFor } = await import('../../merge/checks.ts');
  const { age } = await import('../terminal/format.ts');
  const { changeLine } = await import('../review/show-change.ts');
  const { createPaint } = await import('../terminal/colour.ts');
  const { count } = await import('../terminal/format.ts');
  const { visible } = await import('../../lib/sanitize.ts');
  const paint = createPaint(ctx.colour);
  const lines = plan.take.slice(0, SHOWN).map((change) => `  ${changeLine(change, paint)}`);
  const more = plan.take.length > SHOWN ? [`  and ${plan.take.length - SHOWN} more`] : [];
  const last = checksFor(task, plan.tree);
  const checks =
    last === null
      ? rules.checks.run.length === 0
        ? []
        : ['checks: not run for this selection']
      : [`checks: ${last.state} ${age(ctx.now().getTime() - (last.endedAtMs ?? 0))} ago`];
  ctx.stderr.write(
    `${[`${task.task.name}: ${count(plan.take.length, 'file')} onto ${visible(plan.ref.replace('refs/heads/', ''))}`, ...lines, ...more, ...checks].join('\n')}\n`,
  );
}

const SHOWN = 40;

/** All that is left to merge can run code and was not named. A branch that has all changes already is what the user wanted. */
function leavesAllOut({ to, risky }: MergePlan): boolean {
  return to === null && risky.length > 0;
}

async function tell(plan: MergePlan, name: string, dry: boolean, ctx: Context): Promise<void> {
  const { count, shellQuote } = await import('../terminal/format.ts');
  const { visible } = await import('../../lib/sanitize.ts');
  const branch = visible(plan.ref.replace('refs/heads/', ''));
  const say = (text: string): void => void ctx.stderr.write(`${text}\n`);
  if (plan.to === null)
    say(leavesAllOut(plan) ? `Nothing was merged.` : `${branch} has these changes of ${name} already.`);
  else if (dry) say(`This can be merged; nothing was changed.`);
  else
    say(
      `Merged ${count(plan.take.length, 'file')} of ${name} into ${branch} (${plan.to.slice(0, 10)}). To undo: ags undo ${name}`,
    );
  if (plan.risky.length === 0) return;
  say('Left out, because they can run code on this machine or in CI:');
  for (const change of plan.risky.slice(0, SHOWN)) say(`  ${visible(change.path)}`);
  const [first] = plan.risky;
  say(`Review them (ags diff ${name}), then name each: --risky ${shellQuote(first?.path ?? '')}`);
}
