// cli/verbs/send.ts: `ags send <task> "<message>"`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'tell an agent something, now or as its next turn',
  usage: 'send <task> "<message>" | --withdraw',
  about:
    'While it works, an agent that can listen hears it at once; any other gets it when its turn is over. One that is done goes on with it, in the same conversation and over the same files.',
  examples: [
    'ags send fix-date-tests "Use UTC everywhere, and add a test for leap years"',
    'ags send @ "Run the linter too"',
    'ags send @ --withdraw',
  ],
  options: {
    withdraw: { type: 'boolean', about: 'take back what the agent has not had yet, and print it' },
  },
  async run(args, ctx) {
    const [name, text, ...more] = args.positionals;
    if (args.values['withdraw'] === true) return withdrawAll(name, text, ctx);
    if (name === undefined || text === undefined || text.trim() === '' || more.length > 0)
      throw new AgsError('usage.invalid', 'Whom should be told what?', { hint: 'ags send <task> "<message>"' });
    const { findTask } = await import('../../queries/find-task.ts');
    const { sendMessage } = await import('../../agent-run/control.ts');
    const task = await findTask(ctx.world, name);
    const delivered = await sendMessage(ctx.world, task, text);
    ctx.stderr.write(`ags: ${SAID[delivered].replaceAll('%', task.task.name)}\n`);
    return EXIT.done;
  },
};
export default verb;

async function withdrawAll(name: string | undefined, text: string | undefined, ctx: Context): Promise<number> {
  if (name === undefined || text !== undefined)
    throw new AgsError('usage.invalid', 'Whose messages should be taken back?', { hint: 'ags send <task> --withdraw' });
  const { findTask } = await import('../../queries/find-task.ts');
  const { waitingFor, withdraw } = await import('../../agent-run/control.ts');
  const task = await findTask(ctx.world, name);
  const texts = waitingFor(task).flatMap(({ id }) => withdraw(task, id) ?? []);
  for (const one of texts) ctx.stdout.write(`${one}\n`);
  const { name: shown } = task.task;
  ctx.stderr.write(
    texts.length === 0
      ? `ags: No message waits for ${shown}.\n`
      : `ags: ${texts.length === 1 ? 'A message was' : `${texts.length} messages were`} taken back; ${shown} never gets ${texts.length === 1 ? 'it' : 'them'}.\n`,
  );
  return EXIT.done;
}

const SAID = {
  now: '% has it.',
  later: '% gets it when its turn is over.',
  begun: '% goes on with it. Watch it with: ags logs -f %',
} as const;
