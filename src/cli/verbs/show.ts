// cli/verbs/show.ts: `ags show [task...]`.
import { EXIT, flat } from '../../protocol/errors.ts';
import { STATE_WORDS } from '../../protocol/run-state.ts';
import { sumsAt } from '../../protocol/run-time.ts';
import { visible } from '../../lib/sanitize.ts';
import { count, formatDuration } from '../../lib/units.ts';
import type { BudgetNow } from '../../queries/budgets.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { age } from '../terminal/format.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'show tasks: goal, state, changes, cost, refused hosts',
  usage: 'show [task...]',
  takes: 'any',
  examples: ['ags show', 'ags show fix-date-tests index-help', 'ags show @ --json'],
  options: { json: { type: 'boolean', about: 'print JSON, one line per task' } },
  async run(args, ctx) {
    const { eachTask, findTasks } = await import('../several.ts');
    const json = args.values['json'] === true;
    const tasks = await findTasks(ctx, args.positionals.length === 0 ? ['@'] : args.positionals);
    let shown = 0;
    return eachTask(ctx, tasks, json, async (task) => {
      if (shown++ > 0 && !json) ctx.stdout.write('\n');
      await show(task, json, ctx);
      return { exit: EXIT.done, word: 'shown' };
    });
  },
};
export default verb;

async function show(stored: StoredTask, json: boolean, ctx: Context): Promise<void> {
  const { describeTask } = await import('../../queries/list.ts');
  const { showTask } = await import('../../queries/show.ts');
  const row = await describeTask({ kind: 'whole', id: stored.task.id, paths: stored.paths, stored });
  const { budgetsNow } = await import('../../queries/budgets.ts');
  const budgets = stored.task.goal === undefined ? [] : await budgetsNow(ctx.host, stored.task.project);
  const facts = { ...showTask(stored, row), budgets };
  if (json) ctx.stdout.write(`${JSON.stringify(facts)}\n`);
  else await print(stored, facts, ctx);
}

type Facts = ReturnType<typeof import('../../queries/show.ts').showTask> & { readonly budgets: readonly BudgetNow[] };

async function print(stored: StoredTask, facts: Facts, ctx: Context): Promise<void> {
  const { createPaint } = await import('../terminal/colour.ts');
  const { meanings, cut, lineWidth, shellLine } = await import('../terminal/format.ts');
  const { budgetText } = await import('../../queries/budgets.ts');
  const paint = createPaint(ctx.colour);
  const rows: [string, string][] = [
    ['state', `${STATE_WORDS[facts.state]}${facts.reason === null ? '' : `: ${flat(facts.reason)}`}`],
    ...(facts.goal === null ? [] : [['goal', cut(facts.goal.split('\n')[0] ?? '', 300)] as [string, string]]),
    ...(facts.agent === null ? [] : [['agent', facts.agent] as [string, string]]),
    ...(stored.task.goal === undefined ? [['command', shellLine(stored.task.command)] as [string, string]] : []),
    ['project', facts.project],
    ...(facts.imported === null ? [] : [['imported', facts.imported] as [string, string]]),
    ...(facts.base === null ? [] : [['from', facts.base] as [string, string]]),
    ['time', timeText(facts, ctx.now().getTime())],
    ...(facts.used === null ? [] : [['used', facts.used] as [string, string]]),
    ...facts.budgets.map((one): [string, string] => ['budget', budgetText(one)]),
    ...(facts.changes === null ? [] : [['changes', facts.changes] as [string, string]]),
    ...(facts.merged === null ? [] : [['merged', mergedText(facts.merged, facts.name)] as [string, string]]),
    ...(facts.checks === null ? [] : [['checks', checksText(facts.checks, ctx)] as [string, string]]),
    ...(facts.denied.length === 0 ? [] : [['refused', facts.denied.join(', ')] as [string, string]]),
    ...(facts.sandbox === '' ? [] : [['sandbox', facts.sandbox] as [string, string]]),
    ...(facts.attacked === null ? [] : [['attacked', attackedText(facts.attacked, ctx)] as [string, string]]),
    ...(facts.image === null ? [] : [['image', facts.image] as [string, string]]),
  ];
  ctx.stdout.write(
    `${paint('bold', visible(facts.name))}\n${meanings(
      rows.map(([name, value]) => [name, visible(value)]),
      lineWidth(ctx.stdout, 80),
    )}`,
  );
  if (facts.lastWord !== null) {
    const { showEvent } = await import('../terminal/show-event.ts');
    const { eventStyle } = await import('../terminal/follow-task.ts');
    ctx.stdout.write(`\n${showEvent(facts.lastWord, eventStyle(ctx, false))}`);
  }
  const { nextSteps } = await import('../terminal/next-steps.ts');
  ctx.stderr.write(nextSteps(stored));
}

function mergedText({ files, of, branch, commit }: NonNullable<Facts['merged']>, name: string): string {
  const which =
    files === null || of === null ? '' : files === of ? `${count(of, 'file')} ` : `${files} of ${count(of, 'file')} `;
  return `${which}into ${branch} as ${commit.slice(0, 7)}; to undo: ags undo ${name}`;
}

function checksText({ state, passed, of, name, line, endedAtMs }: NonNullable<Facts['checks']>, ctx: Context): string {
  const ago = endedAtMs === null ? '' : `, ${age(ctx.now().getTime() - endedAtMs)} ago`;
  const which = name === null ? '' : `: ${name}${line === null ? '' : ` (${line})`}`;
  return `${state}${which}, ${passed} of ${of} passed${ago}`;
}

function attackedText({ held, of, atMs }: NonNullable<Facts['attacked']>, ctx: Context): string {
  return `a sandbox like this, ${age(ctx.now().getTime() - atMs)} ago: ${held} of ${of} attempts stopped or limited`;
}

/** Work apart from waiting: "12m of work, 3m queued, 1h waiting for you". */
function timeText({ time, run, turns }: Facts, nowMs: number): string {
  const { workMs, queueMs, userMs } = sumsAt(time, nowMs);
  const text = (ms: number): string => formatDuration(Math.round(ms / 1000));
  return [
    `${text(workMs)} of work`,
    ...(queueMs < 1000 ? [] : [`${text(queueMs)} queued`]),
    ...(userMs < 1000 ? [] : [`${text(userMs)} waiting for you`]),
    ...(run > 1 ? [`run ${run}`] : []),
    ...(turns > 1 ? [`${turns} turns`] : []),
  ].join(', ');
}
