// cli/verbs/merge.ts: `ags merge [task] [paths...]`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { MergePlan } from '../../tasks/merge.ts';
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
    'ags merge @ --dry-run',
  ],
  options: {
    into: { type: 'string', value: 'branch', about: 'another branch than the one it was started from' },
    squash: { type: 'boolean', about: 'one commit of everything (the default)' },
    'keep-commits': { type: 'boolean', about: "keep the agent's own commits" },
    message: { type: 'string', short: 'm', value: 'text', about: 'the text of the commit' },
    risky: { type: 'string', multiple: true, value: 'path', about: 'take this one file that can run code; exact path' },
    'dry-run': { type: 'boolean', about: 'say what would be merged, and change nothing' },
    yes: { type: 'boolean', short: 'y', about: 'do not ask' },
    json: { type: 'boolean', about: 'what was merged, as JSON' },
  },
  async run(args, ctx) {
    const { findTask } = await import('../../tasks/find-task.ts');
    const { openMerge } = await import('../../tasks/merge.ts');
    const { riskyPatterns } = await import('../../tasks/risky-patterns.ts');
    const { LOOKING, meanwhile } = await import('../meanwhile.ts');
    const { values } = args;
    if (values['squash'] === true && values['keep-commits'] === true)
      throw new AgsError('usage.invalid', '--squash and --keep-commits contradict each other.');
    const task = await findTask(ctx.world, args.positionals[0], {
      say: (text) => void ctx.stderr.write(`ags: ${text}\n`),
      work: true,
    });
    const { name } = task.task;
    const opening = openMerge(ctx.world, task, {
      paths: args.positionals.slice(1),
      risky: (values['risky'] as string[] | undefined) ?? [],
      riskyPatterns: await riskyPatterns(ctx.world, task.task.project),
      into: values['into'] as string | undefined,
      keepCommits: values['keep-commits'] === true,
      message: values['message'] as string | undefined,
    });
    using merge = await meanwhile(ctx, LOOKING, opening);
    const { plan } = merge;
    const dry = values['dry-run'] === true;
    const ask = !dry && values['yes'] !== true && values['json'] !== true && ctx.terminal.stdin && ctx.terminal.stderr;
    if (plan.to !== null && (dry || ask)) await show(plan, name, ctx);
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

async function show(plan: MergePlan, name: string, ctx: Context): Promise<void> {
  const { changeLine } = await import('../show-change.ts');
  const { createPaint } = await import('../colour.ts');
  const { count } = await import('../format.ts');
  const { visible } = await import('../../lib/sanitize.ts');
  const paint = createPaint(ctx.colour);
  const lines = plan.take.slice(0, SHOWN).map((change) => `  ${changeLine(change, paint)}`);
  const more = plan.take.length > SHOWN ? [`  and ${plan.take.length - SHOWN} more`] : [];
  ctx.stderr.write(
    `${[`${name}: ${count(plan.take.length, 'file')} onto ${visible(plan.ref.replace('refs/heads/', ''))}`, ...lines, ...more].join('\n')}\n`,
  );
}

const SHOWN = 40;

async function tell(plan: MergePlan, name: string, dry: boolean, ctx: Context): Promise<void> {
  const { count, shellQuote } = await import('../format.ts');
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
