// cli/verbs/continue.ts: `ags continue [task...]`, `ags continue --all`.
import { EXIT } from '../../protocol/errors.ts';
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
  },
  async run(args, ctx) {
    const { asNamed, eachTask, findTasks, pickTask, refuseNamesBeside } = await import('../several.ts');
    const one = (task: StoredTask): Promise<Done> => goOn(task, ctx);
    if (refuseNamesBeside(args, 'continue', 'all')) {
      const { unfinishedTasks } = await import('../../queries/list.ts');
      // The oldest first, as they were queued.
      const tasks = await unfinishedTasks(ctx.stateDir);
      if (tasks.length === 0) ctx.stderr.write('ags: no task was queued or under way when ags was stopped.\n');
      return eachTask(ctx, asNamed(tasks), false, one);
    }
    const tasks =
      args.positionals.length > 0
        ? await findTasks(ctx, args.positionals)
        : asNamed([await pickTask(ctx, 'continue', ['interrupted', 'failed', 'stopped'])]);
    return eachTask(ctx, tasks, false, one);
  },
};
export default verb;

async function goOn(task: StoredTask, ctx: Context): Promise<Done> {
  const { hasBegun } = await import('../../protocol/run-state.ts');
  const { continueTask, isLive } = await import('../../agent-run/control.ts');
  const { name } = task.task;
  if (isLive(task)) {
    ctx.stderr.write(`ags: ${name} is running.\n`);
    return { exit: EXIT.done, word: 'running already' };
  }
  const begun = hasBegun(task.run);
  await continueTask(ctx.host, task);
  ctx.stderr.write(`ags: ${name} ${begun ? 'continues' : 'starts'}. Follow it: ags logs -f ${name}\n`);
  return { exit: EXIT.done, word: begun ? 'continued' : 'started' };
}
