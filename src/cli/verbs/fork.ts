// cli/verbs/fork.ts: `ags fork <task> "<goal>"`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'give another goal, or another agent, what a task has done so far',
  usage: 'fork <task> "<goal>"',
  about:
    'Another task, with a branch, a workspace and a sandbox of its own, that begins with the files of the first as they are on its branch. The first stays as it is, and both can be merged.',
  examples: [
    'ags fork fix-date-tests "Do the same for the calendar"',
    'ags fork fix-date-tests "Make it simpler" --agent codex --name simpler -d',
  ],
  options: {
    agent: { type: 'string', short: 'a', value: 'name', about: 'another one than the task had' },
    model: { type: 'string', value: 'name', about: 'the model that the agent is told to use' },
    name: { type: 'string', value: 'name', about: 'what the new task is called; otherwise after its goal' },
    detach: { type: 'boolean', short: 'd', about: 'do not stay to watch' },
    verbose: { type: 'boolean', short: 'v', about: 'show thoughts, and what commands print' },
  },
  async run(args, ctx) {
    const [from, text = '', ...more] = args.positionals;
    if (from === undefined || text.trim() === '' || more.length > 0)
      throw new AgsError('usage.invalid', 'Which task, and what should come of it?', {
        hint: 'ags fork <task> "<goal>"',
      });
    const given = (name: string): string | null => (args.values[name] as string | undefined) ?? null;
    const { findTask } = await import('../../queries/find-task.ts');
    const { forkTask } = await import('../../agent-run/fork.ts');
    const [made] = await forkTask(ctx.world, await findTask(ctx.world, from), {
      text,
      name: given('name'),
      agent: given('agent'),
      model: given('model'),
    });
    if (made === undefined) throw new Error('no task was made');
    if (args.values['detach'] === true) {
      ctx.stderr.write(`ags: started. Watch it with: ags logs -f ${made.task.name}\n`);
      ctx.stdout.write(`${made.task.name}\n`);
      return EXIT.done;
    }
    const { followTask } = await import('../terminal/follow-task.ts');
    return followTask(made, { after: 0, verbose: args.values['verbose'] === true, json: false }, ctx);
  },
};
export default verb;
