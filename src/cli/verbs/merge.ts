// cli/verbs/merge.ts: `ags merge [task...] [paths...]`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { StoredTask } from '../../store/tasks.ts';
import type { Merge, MergePlan, MergeRequest } from '../../merge/merge.ts';
import type { MergeRules } from '../../merge/checks.ts';
import { count } from '../terminal/format.ts';
import type { Done, Named } from '../several.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'merge the work of an agent into a branch of yours',
  usage: 'merge [task...] [--] [paths...]',
  takes: 'any',
  about:
    'Adds one commit to the branch that the task started from, or to another branch (--into). If that branch is checked out, the changed files are written too; if one of them has uncommitted changes, nothing happens.\nFiles that can run code on this machine or in CI are left out unless you name them. To undo it: ags undo.\nSeveral tasks are shown together, asked about once and merged in order; a conflict of one leaves the others. After the first, a word is a task only if it is the full name of one; put -- before paths.',
  examples: [
    'ags merge fix-login-4kd2',
    'ags merge fix-login-4kd2 index-help',
    'ags merge --ready --check',
    'ags merge @ src/ docs/readme.md',
    'ags merge @ --risky package.json --into develop',
    'ags merge @ --patch',
    'ags merge @ --keep-commits',
    'ags merge @ --check',
    'ags merge @ --dry-run',
  ],
  options: {
    ready: { type: 'boolean', about: 'every task of this project that is ready' },
    into: { type: 'string', value: 'branch', about: 'target branch instead of the one the task started from' },
    squash: { type: 'boolean', about: 'make one commit (the default)' },
    'keep-commits': { type: 'boolean', about: "keep the agent's own commits" },
    message: { type: 'string', short: 'm', value: 'text', about: 'the commit message' },
    risky: { type: 'string', multiple: true, value: 'path', about: 'take this one file that can run code; exact path' },
    patch: { type: 'boolean', short: 'p', about: 'choose files, and parts of files, on the terminal' },
    check: { type: 'boolean', about: 'run the checks first (ags check) and merge only if all pass' },
    'dry-run': { type: 'boolean', about: 'print what would be merged, and change nothing' },
    yes: { type: 'boolean', short: 'y', about: 'do not ask' },
    json: { type: 'boolean', about: 'print the result as JSON' },
  },
  async run(args, ctx) {
    const { findTasks, readyTasks, refuseNamesBeside, tasksAndPaths } = await import('../several.ts');
    const { findWork } = await import('../../agent-run/find-work.ts');
    const { values } = args;
    if (values['squash'] === true && values['keep-commits'] === true)
      throw new AgsError('usage.invalid', '--squash and --keep-commits exclude each other.');
    const { names, paths } = await tasksAndPaths(args, ctx);
    const wish: Wish = {
      paths,
      values,
      dry: values['dry-run'] === true,
      json: values['json'] === true,
      asks: values['yes'] !== true && values['json'] !== true && ctx.terminal.stdin && ctx.terminal.stderr,
    };
    const find = (name: string | undefined): Promise<StoredTask> =>
      findWork(ctx.host, name, { say: (text) => void ctx.stderr.write(`ags: ${text}\n`) });
    const ready = refuseNamesBeside({ positionals: names, values }, 'merge', 'ready');
    if (values['patch'] === true && (ready || names.length > 1))
      throw new AgsError('usage.invalid', '--patch is for one task.', { hint: 'Leave it out, or merge one by one.' });
    if (!ready && names.length === 0) return (await mergeOne(await find(undefined), wish, ctx)).exit;
    const tasks = await findTasks(ctx, ready ? await readyTasks(ctx) : names, find);
    if (tasks.length === 0) ctx.stderr.write('ags: no task of this project is ready.\n');
    return mergeEach(tasks, wish, ctx);
  },
};
export default verb;

interface Wish {
  readonly paths: readonly string[];
  readonly values: Arguments['values'];
  readonly dry: boolean;
  readonly json: boolean;
  readonly asks: boolean;
}

/** Of several, shows all first and asks once. Each is planned again at its turn, because those before it moved the branch. */
async function mergeEach(tasks: readonly Named[], wish: Wish, ctx: Context): Promise<number> {
  const { eachTask } = await import('../several.ts');
  if (tasks.length > 1 && wish.values['message'] !== undefined)
    throw new AgsError('usage.invalid', '--message is for one task.', { hint: 'Leave it out, or merge one by one.' });
  if (tasks.length < 2 || wish.dry || !wish.asks)
    return eachTask(ctx, tasks, wish.json, (task) => mergeOne(task, wish, ctx));
  const { LOOKING, meanwhile } = await import('../terminal/meanwhile.ts');
  const { openMerge } = await import('../../merge/merge.ts');
  const shown = new Map<string, string>();
  for (const { task } of tasks) {
    if (task === null) continue;
    try {
      using merge = await meanwhile(ctx, LOOKING, openMerge(ctx.host, task, await requestOf(task, wish, ctx)));
      shown.set(task.task.id, contentOf(merge.plan));
      if (merge.plan.to !== null) await show(merge.plan, task, await rulesOf(task, ctx), ctx);
    } catch (error) {
      if (!(error instanceof AgsError)) throw error;
      // Told in full at its turn.
      ctx.stderr.write(`${task.task.name}: cannot be merged now\n`);
    }
  }
  if (shown.size > 0 && !/^y(es)?$/i.test(await ctx.ask(`Merge ${count(shown.size, 'task')}? [y/N] `))) {
    ctx.stderr.write('Nothing was merged.\n');
    return EXIT.failed;
  }
  return eachTask(ctx, tasks, false, (task) =>
    mergeOne(task, { ...wish, asks: false }, ctx, (plan) => {
      if (contentOf(plan) === shown.get(task.task.id)) return;
      throw new AgsError('project.changed', `${task.task.name} changed meanwhile; it was not merged.`, {
        hint: `Look at it again: ags diff ${task.task.name}`,
      });
    }),
  );
}

/** What of an agent's work a merge takes. */
function contentOf({ take }: MergePlan): string {
  return JSON.stringify(take.map(({ path, from, after }) => [path, from, after]));
}

async function rulesOf(task: StoredTask, ctx: Context): Promise<MergeRules> {
  const { mergeRules } = await import('../../merge/checks.ts');
  return mergeRules(ctx.host, task.task.project);
}

async function requestOf(task: StoredTask, { paths, values }: Wish, ctx: Context): Promise<MergeRequest> {
  const { riskyPatterns } = await import('../../results/review.ts');
  return {
    paths,
    risky: (values['risky'] as string[] | undefined) ?? [],
    riskyPatterns: await riskyPatterns(ctx.host, task.task.project),
    into: values['into'] as string | undefined,
    keepCommits: values['keep-commits'] === true,
    message: values['message'] as string | undefined,
  };
}

/** The files and parts that the user chooses on the terminal, or the exit status if there are none. */
async function choose(ctx: Context, task: StoredTask, request: MergeRequest): Promise<MergeRequest | number> {
  const { chooseForMerge } = await import('../review/choose-merge.ts');
  const chosen = await chooseForMerge(ctx, task, request);
  if (chosen === null) return EXIT.cancelled;
  return chosen.files.length === 0 ? EXIT.failed : { ...request, paths: [], chosen };
}

/** `agree` throws if the plan is not what the user has agreed to. */
async function mergeOne(task: StoredTask, wish: Wish, ctx: Context, agree?: (plan: MergePlan) => void): Promise<Done> {
  const { meanwhile } = await import('../terminal/meanwhile.ts');
  const { dry, json, asks, values } = wish;
  const { name } = task.task;
  const rules = await rulesOf(task, ctx);
  const check = !dry && (values['check'] === true || rules.required);
  const request = await requestOf(task, wish, ctx);
  const chosen = values['patch'] === true ? await choose(ctx, task, request) : request;
  if (typeof chosen === 'number') {
    ctx.stderr.write('Nothing was merged.\n');
    return { exit: chosen, word: 'not merged', stop: chosen === EXIT.cancelled };
  }
  const opened = await openChecked(ctx, task, chosen, { check, rules, quiet: json });
  if (typeof opened === 'number')
    return opened === EXIT.cancelled
      ? { exit: opened, word: 'stopped', stop: true }
      : { exit: opened, word: 'not merged' };
  using merge = opened;
  // Files that the user was asked about are left out on purpose.
  const plan = chosen.chosen === undefined ? merge.plan : { ...merge.plan, risky: [] };
  agree?.(plan);
  if (plan.to !== null && (dry || asks)) await show(plan, task, rules, ctx);
  if (plan.to !== null && !dry && asks && !/^y(es)?$/i.test(await ctx.ask('Merge? [y/N] '))) {
    ctx.stderr.write('Nothing was merged.\n');
    return { exit: EXIT.failed, word: 'not merged' };
  }
  if (!dry) await meanwhile(ctx, `Merging ${name}`, merge.carryOut());
  if (json)
    ctx.stdout.write(
      `${JSON.stringify({ task: name, ref: plan.ref, from: plan.from, to: plan.to, merged: !dry && plan.to !== null, whole: plan.whole, files: plan.take.map((change) => change.path), risky: plan.risky.map((change) => change.path) })}\n`,
    );
  else await tell(plan, name, dry, ctx);
  if (leavesAllOut(plan)) return { exit: EXIT.failed, word: 'left out' };
  if (isEmpty(plan)) return { exit: EXIT.failed, word: 'without changes' };
  return { exit: EXIT.done, word: plan.to === null ? 'merged already' : dry ? 'can be merged' : 'merged' };
}

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
  const left = new Set(plan.left.map(({ path }) => path));
  const lines = plan.take
    .slice(0, SHOWN)
    .map((change) => `  ${changeLine(change, paint)}${left.has(change.path) ? '  (in part)' : ''}`);
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

function isEmpty({ take, left }: MergePlan): boolean {
  return take.length + left.length === 0;
}

async function tell(plan: MergePlan, name: string, dry: boolean, ctx: Context): Promise<void> {
  const { count, shellQuote } = await import('../terminal/format.ts');
  const { visible } = await import('../../lib/sanitize.ts');
  const branch = visible(plan.ref.replace('refs/heads/', ''));
  const say = (text: string): void => void ctx.stderr.write(`${text}\n`);
  if (isEmpty(plan)) say(`${name} has no changes; nothing was merged.`);
  else if (plan.to === null)
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
