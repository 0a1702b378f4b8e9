// cli/verbs/restart.ts: `ags restart [task]`.
import { EXIT } from '../../protocol/errors.ts';
import { readTask } from '../../store/tasks.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'start the same goal again; the earlier result is kept',
  usage: 'restart [task]',
  takes: 'any',
  about:
    'Starts a new run from the same commit, with a fresh workspace and a new conversation. The work of the earlier run stays on branch ags/<task>.<number>.',
  examples: ['ags restart', 'ags restart fix-date-tests -d'],
  options: {
    detach: { type: 'boolean', short: 'd', about: 'return at once instead of following the task' },
    verbose: { type: 'boolean', short: 'v', about: 'show thoughts and command output' },
  },
  async run(args, ctx) {
    const { findTask } = await import('../../queries/find-task.ts');
    const { restartTask } = await import('../../agent-run/control.ts');
    const task = await findTask(ctx.host, args.positionals[0] ?? '@');
    await restartTask(ctx.host, task);
    if (args.values['detach'] === true) {
      ctx.stderr.write(`ags: started. Follow it: ags logs -f ${task.task.name}\n`);
      return EXIT.done;
    }
    const { followTask } = await import('../terminal/follow-task.ts');
    const fresh = (await readTask(ctx.stateDir, task.task.id)) ?? task;
    return followTask(fresh, { after: 0, verbose: args.values['verbose'] === true, json: false }, ctx);
  },
};
export default verb;
