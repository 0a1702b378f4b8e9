// cli/verbs/continue.ts: `ags continue [task...]`, `ags continue --all`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { StoredTask } from '../../store/tasks.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'resume agents that stopped, failed or were killed',
  usage: 'continue [task...] | --all',
  takes: 'any',
  about:
    'The agent resumes the same conversation and the same files. A task that never began starts with its goal. To add a message: ags send.',
  examples: ['ags continue', 'ags continue fix-date-tests', 'ags continue --all'],
  options: {
    all: { type: 'boolean', about: 'every task, of all projects, that was queued or under way when ags was stopped' },
  },
  async run({ positionals, values }, ctx) {
    const { findTask } = await import('../../queries/find-task.ts');
    if (values['all'] === true) {
      if (positionals.length > 0)
        throw new AgsError('usage.invalid', 'Name tasks or use --all, not both.', { hint: 'ags continue --all' });
      return goOnWithAll(ctx);
    }
    const names = positionals.length === 0 ? ['@'] : positionals;
    const tasks: StoredTask[] = [];
    for (const name of names) tasks.push(await findTask(ctx.host, name));
    for (const task of tasks) await goOn(task, ctx);
    return EXIT.done;
  },
};
export default verb;

/** The oldest first, as they were queued. A task that cannot continue does not hold up the others. */
async function goOnWithAll(ctx: Context): Promise<number> {
  const { unfinishedTasks } = await import('../../queries/list.ts');
  const tasks = await unfinishedTasks(ctx.stateDir);
  if (tasks.length === 0) ctx.stderr.write('ags: no task was queued or under way when ags was stopped.\n');
  let failed = 0;
  for (const task of tasks) {
    try {
      await goOn(task, ctx);
    } catch (error) {
      if (!(error instanceof AgsError)) throw error;
      failed++;
      ctx.stderr.write(`ags: ${task.task.name}: ${error.message}${error.hint === undefined ? '' : ` ${error.hint}`}\n`);
    }
  }
  return failed === 0 ? EXIT.done : EXIT.failed;
}

async function goOn(task: StoredTask, ctx: Context): Promise<void> {
  const { hasBegun } = await import('../../protocol/run-state.ts');
  const { continueTask, isLive } = await import('../../agent-run/control.ts');
  const { name } = task.task;
  if (isLive(task)) return void ctx.stderr.write(`ags: ${name} is running.\n`);
  await continueTask(ctx.host, task);
  ctx.stderr.write(`ags: ${name} ${hasBegun(task.run) ? 'continues' : 'starts'}. Follow it: ags logs -f ${name}\n`);
}
