// cli/verbs/continue.ts: `ags continue [task...]`, `ags continue --all`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { StoredTask } from '../../store/tasks.ts';
import type { Done } from '../several.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'resume agents that stopped, failed or were killed',
  usage: 'continue [task...] | --all',
  takes: 'any',
  about:
    'The agent resumes the same conversation and the same files. A task that never began starts with its goal. To add a message: ags send. Without a name, ags takes the only task of this project that was interrupted, stopped or failed, or asks which.',
  examples: ['ags continue', 'ags continue fix-date-tests index-help', 'ags continue --all'],
  options: {
    all: { type: 'boolean', about: 'every task, of all projects, that was queued or under way when ags was stopped' },
    now: { type: 'boolean', about: 'start without the task that it waits for (after: in a goals file)' },
  },
  async run(args, ctx) {
    const { asNamed, eachTask, findTasks, pickTask, refuseNamesBeside } = await import('../several.ts');
    const one = (task: StoredTask): Promise<Done> => goOn(task, args.values['now'] === true, ctx);
    if (args.values['now'] !== true && refuseNamesBeside(args, 'continue', 'all')) {
      const { unfinishedTasks } = await import('../../queries/list.ts');
      // The oldest first, as they were queued.
      const tasks = await unfinishedTasks(ctx.stateDir);
      if (tasks.length === 0) ctx.stderr.write('ags: no task was queued or under way when ags was stopped.\n');
      return eachTask(ctx, asNamed(tasks), false, one);
    }
    if (args.values['now'] === true && args.positionals.length === 0)
      throw new AgsError('usage.invalid', 'Which task should start now?', { hint: 'ags continue --now <task>' });
    const tasks =
      args.positionals.length > 0
        ? await findTasks(ctx, args.positionals)
        : asNamed([await pickTask(ctx, 'continue', ['interrupted', 'failed', 'stopped'])]);
    return eachTask(ctx, tasks, false, one);
  },
};
export default verb;

async function goOn(task: StoredTask, now: boolean, ctx: Context): Promise<Done> {
  const { hasBegun } = await import('../../protocol/run-state.ts');
  const { continueTask, isLive, startWithoutOther } = await import('../../agent-run/control.ts');
  const { name } = task.task;
  const { after } = task.run;
  if (after !== undefined && now) {
    await startWithoutOther(ctx.host, task);
    ctx.stderr.write(`ags: ${name} starts without ${after}. Follow it: ags logs -f ${name}\n`);
    return { exit: EXIT.done, word: 'started' };
  }
  if (after !== undefined && isLive(task)) {
    ctx.stderr.write(`ags: ${name} waits for ${after}. To start it without ${after}: ags continue --now ${name}\n`);
    return { exit: EXIT.done, word: 'waiting' };
  }
  if (isLive(task)) {
    ctx.stderr.write(`ags: ${name} is running.\n`);
    return { exit: EXIT.done, word: 'running already' };
  }
  const begun = hasBegun(task.run);
  await continueTask(ctx.host, task);
  const how = begun ? 'continues' : after === undefined ? 'starts' : `waits for ${after}`;
  ctx.stderr.write(`ags: ${name} ${how}. Follow it: ags logs -f ${name}\n`);
  return { exit: EXIT.done, word: begun ? 'continued' : after === undefined ? 'started' : 'waiting' };
}
