// cli/verbs/stop.ts: `ags stop <task>...`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'stop an agent and keep its work so far',
  usage: 'stop <task>... | --all',
  takes: 'any',
  examples: ['ags stop fix-date-tests', 'ags stop @ --force', 'ags stop --all'],
  options: {
    force: { type: 'boolean', short: 'f', about: 'stop at once, without finishing the current step' },
    all: { type: 'boolean', about: 'every agent of this project' },
  },
  async run(args, ctx) {
    const { asNamed, eachTask, findTasks, refuseNamesBeside } = await import('../several.ts');
    const { runningTasks } = await import('../../queries/running.ts');
    const { stopTask, waitUntilOver } = await import('../../agent-run/control.ts');
    const all = refuseNamesBeside(args, 'stop', 'all');
    if (!all && args.positionals.length === 0)
      throw new AgsError('usage.invalid', 'Which task should stop?', {
        hint: 'To list running tasks: ags list. To stop all: ags stop --all',
      });
    const tasks = all
      ? asNamed((await runningTasks(ctx.host, 'here')).filter(({ task }) => task.kind === 'agent'))
      : await findTasks(ctx, args.positionals);
    if (tasks.length === 0) ctx.stderr.write('ags: no agent of this project is running.\n');
    const status = await eachTask(ctx, tasks, false, async (task) => {
      const stopping = await stopTask(task, args.values['force'] === true);
      ctx.stderr.write(`ags: ${task.task.name} ${stopping ? 'is being stopped' : 'was not running'}.\n`);
      return { exit: EXIT.done, word: stopping ? 'stopped' : 'not running' };
    });
    // Waits until their work is on their branches.
    for (const { task } of tasks) if (task !== null) await waitUntilOver(ctx.host, task.task.id);
    return status;
  },
};
export default verb;
