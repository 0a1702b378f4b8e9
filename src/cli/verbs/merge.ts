// cli/verbs/merge.ts: `ags merge [task] [paths...]`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { StoredTask } from '../../store/tasks.ts';
import type { Merge, MergePlan, MergeRequest } from '../../merge/merge.ts';
import type { MergeRules } from '../../merge/merge-checks.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'put what an agent did onto a branch of yours',
  usage: 'merge [task] [paths...]',
  about:
    'One commit on the branch that the task was started from, or on another (--into). Where that branch is checked out, the files that change are written too, unless you have uncommitted changes in one of them; then nothing happens.\nFiles that can run code on this machine or in CI are left out unless you name them. Back again: ags undo',
  examples: [
    'ags merge fix-login-4kd2',
    'ags merge @ src/ docs/readme.md',
    'ags merge @ --risky package.json --into develop',
    'ags merge @ --keep-commits',
    'ags merge @ --check',
    'ags merge @ --dry-run',
  ],
  options: {
    into: { type: 'string', value: 'branch', about: 'another branch than the one it was started from' },
    squash: { type: 'boolean', about: 'one commit of everything (the default)' },
    'keep-commits': { type: 'boolean', about: "keep the agent's own commits" },
    message: { type: 'string', short: 'm', value: 'text', about: 'the text of the commit' },
    risky: { type: 'string', multiple: true, value: 'path', about: 'take this one file that can run code; exact path' },
    check: { type: 'boolean', about: 'run the checks first (ags check), and merge only if all pass' },
    'dry-run': { type: 'boolean', about: 'say what would be merged, and change nothing' },
    yes: { type: 'boolean', short: 'y', about: 'do not ask' },
    json: { type: 'boolean', about: 'what was merged, as JSON' },
  },
  async run(args, ctx) {
    const { findTask } = await import('../../queries/find-task.ts');
    const { mergeRules } = await import('../../merge/merge-checks.ts');
    const { riskyPatterns } = await import('../../results/risky-patterns.ts');
    const { meanwhile } = await import('../terminal/meanwhile.ts');
    const { values } = args;
    if (values['squash'] === true && values['keep-commits'] === true)
      throw new AgsError('usage.invalid', '--squash and --keep-commits contradict each other.');
    const task = await findTask(ctx.world, args.positionals[0], {
      say: (text) => void ctx.stderr.write(`ags: ${text}\n`),
      work: true,
    });
    const { name } = task.task;
    const request = {
      paths: args.positionals.slice(1),
      risky: (values['risky'] as string[] | undefined) ?? [],
      riskyPatterns: await riskyPatterns(ctx.world, task.task.project),
      into: values['into'] as string | undefined,
      keepCommits: values['keep-commits'] === true,
      message: values['message'] as string | undefined,
    };
    const dry = values['dry-run'] === true;
    const rules = await mergeRules(ctx.world, task.task.project);
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
    return EXIT.done;
  },
};
export default verb;

/** With `check` after the checks have passed for exactly what is merged; a number: they have not, and it is the exit status. */
async function openChecked(
  ctx: Context,
  task: StoredTask,
  request: MergeRequest,
  { check, rules, quiet }: { check: boolean; rules: MergeRules; quiet: boolean },
): Promise<Merge | number> {
  const { openMerge } = await import('../../merge/merge.ts');
  const { havePassed } = await import('../../merge/merge-checks.ts');
  const { LOOKING, meanwhile } = await import('../terminal/meanwhile.ts');
  const first = await meanwhile(ctx, LOOKING, openMerge(ctx.world, task, request));
  const { tree, to } = first.plan;
  if (!check || to === null || havePassed(task, tree, rules.checks)) return first;
  // Others may merge while they run.
  first[Symbol.dispose]();
  const { runChecksHere, tellChecks } = await import('../review/run-checks.ts');
  const file = await runChecksHere(ctx, task, { ...request, commands: [] }, { quiet });
  if (!quiet || file.state !== 'passed') await tellChecks(ctx, task, file, null);
  if (file.state !== 'passed') {
    ctx.stderr.write('Nothing was merged.\n');
    return file.state === 'failed' ? EXIT.checks : EXIT.cancelled;
  }
  const merge = await meanwhile(ctx, LOOKING, openMerge(ctx.world, task, request));
  if (merge.plan.tree === file.tree) return merge;
  merge[Symbol.dispose]();
  throw new AgsError('project.changed', 'The branch has moved while the checks ran; nothing was merged.', {
    hint: 'Try it again.',
  });
}

async function show(plan: MergePlan, task: StoredTask, rules: MergeRules, ctx: Context): Promise<void> {
  const { checksFor } = await import('../../merge/merge-checks.ts');
  const { age } = await import('../terminal/format.ts');
  const { changeLine } = await import('../review/show-change.ts');
  const { createPaint } = await import('../terminal/colour.ts');
  const { count } = await import('../terminal/format.ts');
  const { visible } = await import('../../lib/sanitize.ts');
  const paint = createPaint(ctx.colour);
  const lines = plan.take.slice(0, SHOWN).map((change) => `  ${changeLine(change, paint)}`);
  const more = plan.take.length > SHOWN ? [`  and ${plan.take.length - SHOWN} more`] : [];
  const last = checksFor(task, plan.tree);
  const said =
    last === null
      ? rules.checks.run.length === 0
        ? []
        : ['checks: not run for this selection']
      : [`checks: ${last.state} ${age(ctx.now().getTime() - (last.endedAtMs ?? 0))} ago`];
  ctx.stderr.write(
    `${[`${task.task.name}: ${count(plan.take.length, 'file')} onto ${visible(plan.ref.replace('refs/heads/', ''))}`, ...lines, ...more, ...said].join('\n')}\n`,
  );
}

const SHOWN = 40;

async function tell(plan: MergePlan, name: string, dry: boolean, ctx: Context): Promise<void> {
  const { count, shellQuote } = await import('../terminal/format.ts');
  const { visible } = await import('../../lib/sanitize.ts');
  const branch = visible(plan.ref.replace('refs/heads/', ''));
  const say = (text: string): void => void ctx.stderr.write(`${text}\n`);
  if (plan.to === null)
    say(
      plan.take.length === 0 && plan.risky.length > 0
        ? `Nothing was merged.`
        : `Everything of ${name} that was asked for is on ${branch} already.`,
    );
  else if (dry) say(`This can be merged; nothing was changed.`);
  else
    say(
      `Merged ${count(plan.take.length, 'file')} of ${name} into ${branch} (${plan.to.slice(0, 10)}). Back again: ags undo ${name}`,
    );
  if (plan.risky.length === 0) return;
  say('Left out, because they can run code on this machine or in CI:');
  for (const change of plan.risky.slice(0, SHOWN)) say(`  ${visible(change.path)}`);
  const [first] = plan.risky;
  say(`Look at them (ags diff ${name}), then name each: --risky ${shellQuote(first?.path ?? '')}`);
}
