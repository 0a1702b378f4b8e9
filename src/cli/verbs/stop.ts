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
    const { findTask } = await import('../../queries/find-task.ts');
    const { runningTasks } = await import('../../queries/running.ts');
    const { stopTask, waitUntilOver } = await import('../../agent-run/control.ts');
    const all = args.values['all'] === true;
    if (!all && args.positionals.length === 0)
      throw new AgsError('usage.invalid', 'Which task should stop?', {
        hint: 'To list running tasks: ags list. To stop all: ags stop --all',
      });
    const tasks = all
      ? (await runningTasks(ctx.host, 'here')).filter(({ task }) => task.kind === 'agent')
      : await Promise.all(args.positionals.map((name) => findTask(ctx.host, name)));
    for (const task of tasks) {
      const stopping = await stopTask(task, args.values['force'] === true);
      ctx.stderr.write(`ags: ${task.task.name} ${stopping ? 'is being stopped' : 'was not running'}.\n`);
    }
    // Waits until their work is on their branches.
    for (const { task } of tasks) await waitUntilOver(ctx.host, task.id);
    return EXIT.done;
  },
};
export default verb;
