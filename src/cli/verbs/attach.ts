// cli/verbs/attach.ts: `ags attach <task>`.
import { EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'connect to the terminal of an agent (ags start -i)',
  usage: 'attach [task]',
  takes: 1,
  about:
    'It waits until the agent has started. Ctrl-] detaches; the agent keeps running. If several terminals are connected, the one that typed last answers the questions that programs ask a terminal.',
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
