// cli/verbs/list.ts: `ags list`: the tasks of this project, or of all projects.
import { EXIT } from '../../protocol/errors.ts';
import { sumsAt } from '../../protocol/run-time.ts';
import { recoverMerges } from '../../merge/recover-merges.ts';
import { budgetsNow, budgetText, type BudgetNow } from '../../queries/budgets.ts';
import { listTasks, type Listing } from '../../queries/list.ts';
import { createPaint } from '../terminal/colour.ts';
import { count } from '../terminal/format.ts';
import type { Context, Verb } from '../verb.ts';
import { taskTable } from '../terminal/task-table.ts';

const verb: Verb = {
  summary: 'list tasks: needing an answer, ready for review, running',
  usage: 'list [--all] [--size] [-q | --json]',
  takes: 0,
  instead: 'For one task: ags show <task>',
  about:
    'Tasks that need you come first. A command that ended without changes leaves no task; tasks of agents stay until you remove them. Every command accepts the beginning of a task name, and @ for the latest task.',
  examples: [
    'ags list',
    'ags list --watch',
    'ags list --all --size',
    'ags list -q',
    "ags list --json | jq '.tasks[] | select(.needsReview) | .name'",
  ],
  options: {
    all: { type: 'boolean', short: 'a', about: 'tasks of all projects, this one first' },
    size: { type: 'boolean', about: 'also measure the disk space of each task' },
    quiet: { type: 'boolean', short: 'q', about: 'print names only' },
    watch: { type: 'boolean', short: 'w', about: 'keep the list up to date until Ctrl-C' },
    json: { type: 'boolean', about: 'print one JSON document' },
  },
  async run({ values }, ctx) {
    if (values['watch'] === true) {
      const { watchList } = await import('../terminal/watch-list.ts');
      return watchList(values['all'] === true, ctx);
    }
    await recoverMerges(ctx.host);
    const listing = await listTasks(ctx.host, { all: values['all'] === true, size: values['size'] === true });
    if (values['quiet'] === true && values['json'] !== true) {
      ctx.stdout.write(listing.tasks.map(({ name }) => `${name}\n`).join(''));
      return EXIT.done;
    }
    const budgets = await budgetsNow(ctx.host, listing.project);
    if (values['json'] === true)
      ctx.stdout.write(`${JSON.stringify(listDocument(listing, budgets, ctx.now().getTime()), null, 2)}\n`);
    else {
      show(listing, values['all'] === true, ctx);
      for (const one of budgets) ctx.stderr.write(`Budget: ${budgetText(one)}\n`);
    }
    return EXIT.done;
  },
};
export default verb;

function show(listing: Listing, all: boolean, ctx: Context): void {
  const { tasks, elsewhere } = listing;
  if (tasks.length === 0) {
    ctx.stderr.write(
      `${all || listing.project === null ? 'No task is running or waiting for a review.' : 'No task of this project is running or waiting for a review.'}\nStart one: ags exec -- <command>\n`,
    );
  } else {
    ctx.stdout.write(taskTable(tasks, all || listing.project === null, createPaint(ctx.colour), ctx));
  }
  if (elsewhere > 0)
    ctx.stderr.write(
      `${tasks.length === 0 ? '' : '\n'}${count(elsewhere, 'task')} in other projects: ags list --all\n`,
    );
}

function listDocument(listing: Listing, budgets: readonly BudgetNow[], nowMs: number): unknown {
  const iso = (ms: number | null): string | null => (ms === null || ms === 0 ? null : new Date(ms).toISOString());
  return {
    project: listing.project,
    elsewhere: listing.elsewhere,
    budgets,
    tasks: listing.tasks.map(({ startedAtMs, endedAtMs, time, ...task }) => ({
      ...task,
      time: sumsAt(time, nowMs),
      startedAt: iso(startedAtMs),
      endedAt: iso(endedAtMs),
    })),
  };
}
