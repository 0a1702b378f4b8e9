// cli/verbs/fork.ts: `ags fork <task> "<goal>"`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'start a new task from the files of another one',
  usage: 'fork <task> "<goal>"',
  takes: 2,
  instead: 'Put the goal in quotes: ags fork <task> "<goal>"',
  about:
    'The new task has its own branch, workspace and sandbox, and starts from the files on the branch of the first task. The first task stays as it is, and you can merge both.',
  examples: [
    'ags fork fix-date-tests "Do the same for the calendar"',
    'ags fork fix-date-tests "Make it simpler" --agent codex --name simpler -d',
  ],
  options: {
    agent: { type: 'string', short: 'a', value: 'agent', about: 'agent to use instead of that of the first task' },
    model: { type: 'string', value: 'name', about: 'the model for the agent' },
    name: { type: 'string', value: 'name', about: 'name of the new task; the default comes from its goal' },
    detach: { type: 'boolean', short: 'd', about: 'return at once instead of following the task' },
    verbose: { type: 'boolean', short: 'v', about: 'show thoughts and command output' },
  },
  async run(args, ctx) {
    const [from, text = ''] = args.positionals;
    if (from === undefined || text.trim() === '')
      throw new AgsError('usage.invalid', 'Which task, and what goal?', {
        hint: 'ags fork <task> "<goal>"',
      });
    const given = (name: string): string | null => (args.values[name] as string | undefined) ?? null;
    const { findTask } = await import('../../queries/find-task.ts');
    const { forkTask } = await import('../../agent-run/fork.ts');
    const [made] = await forkTask(ctx.host, await findTask(ctx.host, from), {
      text,
      name: given('name'),
      agent: given('agent'),
      model: given('model'),
    });
    if (made === undefined) throw new Error('no task was made');
    if (args.values['detach'] === true) {
      ctx.stderr.write(`ags: started. Follow it: ags logs -f ${made.task.name}\n`);
      ctx.stdout.write(`${made.task.name}\n`);
      return EXIT.done;
    }
    const { followTask } = await import('../terminal/follow-task.ts');
    return followTask(made, { after: 0, verbose: args.values['verbose'] === true, json: false }, ctx);
  },
};
export default verb;
