// cli/verbs/attach.ts: `ags attach <task>`.
import { EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'connect to the terminal of an agent (ags start -i)',
  usage: 'attach [task]',
  takes: 1,
  about: 'Ctrl-] detaches; the agent keeps running.',
  examples: ['ags attach', 'ags attach login'],
  options: {},
  async run(args, ctx) {
    const { findTask } = await import('../../queries/find-task.ts');
    const { openGuest } = await import('../terminal/guest-terminal.ts');
    const task = await findTask(ctx.host, args.positionals[0] ?? '@');
    const code = await openGuest(ctx, task, { do: 'attach' });
    return code ?? EXIT.done;
  },
};
export default verb;
