// cli/verbs/send.ts: `ags send <task> "<message>"`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'tell an agent something, now or as its next turn',
  usage: 'send <task> "<message>"',
  about:
    'While it works, an agent that can listen hears it at once; any other gets it when its turn is over. One that is done goes on with it, in the same conversation and over the same files.',
  examples: [
    'ags send fix-date-tests "Use UTC everywhere, and add a test for leap years"',
    'ags send @ "Run the linter too"',
  ],
  options: {},
  async run(args, ctx) {
    const [name, text, ...more] = args.positionals;
    if (name === undefined || text === undefined || text.trim() === '' || more.length > 0)
      throw new AgsError('usage.invalid', 'Whom should be told what?', { hint: 'ags send <task> "<message>"' });
    const { findTask } = await import('../../tasks/find-task.ts');
    const { sendMessage } = await import('../../tasks/steer.ts');
    const task = await findTask(ctx.world, name);
    const delivered = await sendMessage(ctx.world, task, text);
    ctx.stderr.write(`ags: ${SAID[delivered].replaceAll('%', task.task.name)}\n`);
    return EXIT.done;
  },
};
export default verb;

const SAID = {
  now: '% has it.',
  later: '% gets it when its turn is over.',
  begun: '% goes on with it. Watch it with: ags logs -f %',
} as const;
