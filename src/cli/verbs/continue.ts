// cli/verbs/continue.ts: `ags continue [task]`.
import { EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'let an agent that stopped, failed or was killed go on',
  usage: 'continue [task]',
  about: 'In the same conversation and over the same files. To say more than "go on": ags send.',
  examples: ['ags continue', 'ags continue fix-date-tests'],
  options: {},
  async run(args, ctx) {
    const { findTask } = await import('../../queries/find-task.ts');
    const { continueTask, isLive } = await import('../../agent-run/control.ts');
    const task = await findTask(ctx.world, args.positionals[0] ?? '@');
    if (isLive(task)) {
      ctx.stderr.write(`ags: ${task.task.name} is running.\n`);
      return EXIT.done;
    }
    await continueTask(ctx.world, task);
    ctx.stderr.write(`ags: ${task.task.name} goes on. Watch it with: ags logs -f ${task.task.name}\n`);
    return EXIT.done;
  },
};
export default verb;
