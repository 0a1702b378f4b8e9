// cli/verbs/send.ts: `ags send <task> "<message>"`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'send a message to an agent',
  usage: 'send <task> "<message>" | --withdraw',
  takes: 2,
  instead: 'Put the message in quotes: ags send <task> "<message>"',
  about:
    'A working agent gets the message at once if it supports that, else after its turn. An agent that is done continues with it, in the same conversation and with the same files.',
  examples: [
    'ags send fix-date-tests "Use UTC everywhere, and add a test for leap years"',
    'ags send @ "Run the linter too"',
    'ags send @ --withdraw',
  ],
  options: {
    withdraw: { type: 'boolean', about: 'take back messages that the agent has not received yet, and print them' },
  },
  async run(args, ctx) {
    const [name, text] = args.positionals;
    if (args.values['withdraw'] === true) return withdrawAll(name, text, ctx);
    if (name === undefined || text === undefined || text.trim() === '')
      throw new AgsError('usage.invalid', 'Which task, and what message?', { hint: 'ags send <task> "<message>"' });
    const { findTask } = await import('../../queries/find-task.ts');
    const { sendMessage } = await import('../../agent-run/control.ts');
    const task = await findTask(ctx.host, name);
    const delivered = await sendMessage(ctx.host, task, text);
    ctx.stderr.write(`ags: ${DELIVERED[delivered].replaceAll('%', task.task.name)}\n`);
    return EXIT.done;
  },
};
export default verb;

async function withdrawAll(name: string | undefined, text: string | undefined, ctx: Context): Promise<number> {
  if (name === undefined || text !== undefined)
    throw new AgsError('usage.invalid', "Which task's messages should be withdrawn?", {
      hint: 'ags send <task> --withdraw',
    });
  const { findTask } = await import('../../queries/find-task.ts');
  const { waitingFor, withdraw } = await import('../../agent-run/control.ts');
  const task = await findTask(ctx.host, name);
  const texts = waitingFor(task).flatMap(({ id }) => withdraw(task, id) ?? []);
  for (const one of texts) ctx.stdout.write(`${one}\n`);
  const { name: shown } = task.task;
  ctx.stderr.write(
    texts.length === 0
      ? `ags: There is no waiting message for ${shown}.\n`
      : `ags: ${texts.length === 1 ? 'A message was' : `${texts.length} messages were`} withdrawn; ${shown} does not receive ${texts.length === 1 ? 'it' : 'them'}.\n`,
  );
  return EXIT.done;
}

const DELIVERED = {
  now: '% has received it.',
  later: '% receives it after this turn.',
  begun: '% continues with it. Follow it: ags logs -f %',
} as const;
