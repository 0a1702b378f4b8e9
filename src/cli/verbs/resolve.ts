// cli/verbs/resolve.ts: `ags resolve <task>`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { visible } from '../../lib/sanitize.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'let an agent resolve the conflicts of a task with your branch',
  usage: 'resolve <task>',
  takes: 1,
  about:
    'Starts a new task on the current branch; its files contain both sides with conflict markers. You review and merge its result like any other; the first task stays as it is.',
  examples: ['ags resolve fix-date-tests', 'ags resolve fix-date-tests --into develop --agent codex'],
  options: {
    into: {
      type: 'string',
      value: 'branch',
      about: 'target branch instead of the one the task started from',
    },
    agent: { type: 'string', value: 'agent', about: 'agent to use instead of that of the first task' },
  },
  async run(args, ctx) {
    const [name] = args.positionals;
    if (name === undefined)
      throw new AgsError('usage.invalid', 'Which task has the conflicts?', { hint: 'ags resolve <task>' });
    const { findTask } = await import('../../queries/find-task.ts');
    const { resolveTask } = await import('../../merge/resolve.ts');
    const { task, conflicts } = await resolveTask(ctx.host, await findTask(ctx.host, name), {
      into: args.values['into'] as string | undefined,
      agent: args.values['agent'] as string | undefined,
    });
    for (const path of conflicts) ctx.stderr.write(`  ${visible(path)}\n`);
    ctx.stderr.write(`ags: ${task.task.name} resolves the conflicts. Follow it: ags logs -f ${task.task.name}\n`);
    ctx.stdout.write(`${task.task.name}\n`);
    return EXIT.done;
  },
};
export default verb;
