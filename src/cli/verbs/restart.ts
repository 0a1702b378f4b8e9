// cli/verbs/restart.ts: `ags restart [task...]`.
import { EXIT } from '../../protocol/errors.ts';
import { readTask, type StoredTask } from '../../store/tasks.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'start the same goal again; the earlier result is kept',
  usage: 'restart [task...]',
  takes: 'any',
  about:
    'Starts a new run from the same commit, with a fresh workspace and a new conversation. The work of the earlier run stays on branch ags/<task>.<number>. Without a name, ags takes the only task of this project that has ended and is not merged, or asks which.',
  examples: ['ags restart', 'ags restart fix-date-tests index-help -d'],
  options: {
    detach: {
      type: 'boolean',
      short: 'd',
      about: 'return at once instead of following the task; several are never followed',
    },
    verbose: { type: 'boolean', short: 'v', about: 'show thoughts and command output' },
  },
  async run(args, ctx) {
    const { asNamed, eachTask, findTasks, pickTask } = await import('../several.ts');
    const tasks =
      args.positionals.length > 0
        ? await findTasks(ctx, args.positionals)
        : asNamed([await pickTask(ctx, 'restart', ['interrupted', 'failed', 'stopped', 'no-changes', 'ready'])]);
    const follows = tasks.length === 1 && args.values['detach'] !== true;
    return eachTask(ctx, tasks, false, async (task) => {
      const { restartTask } = await import('../../agent-run/control.ts');
      await restartTask(ctx.host, task);
      if (follows) return { exit: await follow(task, args.values['verbose'] === true, ctx), word: '' };
      ctx.stderr.write(`ags: ${task.task.name} starts again. Follow it: ags logs -f ${task.task.name}\n`);
      return { exit: EXIT.done, word: 'started again' };
    });
  },
};
export default verb;

async function follow(task: StoredTask, verbose: boolean, ctx: Context): Promise<number> {
  const { followTask } = await import('../terminal/follow-task.ts');
  const fresh = (await readTask(ctx.stateDir, task.task.id)) ?? task;
  return followTask(fresh, { after: 0, verbose, json: false }, ctx);
}
