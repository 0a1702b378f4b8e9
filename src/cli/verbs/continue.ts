// cli/verbs/continue.ts: `ags continue [task]`.
import { EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'resume an agent that stopped, failed or was killed',
  usage: 'continue [task]',
  about: 'The agent resumes the same conversation and the same files. To add a message: ags send.',
  examples: ['ags continue', 'ags continue fix-date-tests'],
  options: {},
  async run(args, ctx) {
    const { findTask } = await import('../../queries/find-task.ts');
    const { continueTask, isLive } = await import('../../agent-run/control.ts');
    const task = await findTask(ctx.host, args.positionals[0] ?? '@');
    if (isLive(task)) {
      ctx.stderr.write(`ags: ${task.task.name} is running.\n`);
      return EXIT.done;
    }
    await continueTask(ctx.host, task);
    ctx.stderr.write(`ags: ${task.task.name} continues. Follow it: ags logs -f ${task.task.name}\n`);
    return EXIT.done;
  },
};
export default verb;
