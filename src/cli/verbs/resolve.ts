// cli/verbs/resolve.ts: `ags resolve <task>`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { visible } from '../../lib/sanitize.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'hand the conflicts of a task with your branch to an agent',
  usage: 'resolve <task>',
  about:
    'Makes another task, on the branch as it is now, whose files are both sides in one with marks where they do not fit together. Its result is reviewed and merged like any other; the first task stays as it is.',
  examples: ['ags resolve fix-date-tests', 'ags resolve fix-date-tests --into develop --agent codex'],
  options: {
    into: {
      type: 'string',
      value: 'branch',
      about: 'the branch it is to be merged into; otherwise the one it was started from',
    },
    agent: { type: 'string', value: 'agent', about: 'another one than the task had' },
  },
  async run(args, ctx) {
    const [name, ...more] = args.positionals;
    if (name === undefined || more.length > 0)
      throw new AgsError('usage.invalid', 'Whose conflicts should be resolved?', { hint: 'ags resolve <task>' });
    const { findTask } = await import('../../queries/find-task.ts');
    const { resolveTask } = await import('../../merge/resolve.ts');
    const { task, conflicts } = await resolveTask(ctx.world, await findTask(ctx.world, name), {
      into: args.values['into'] as string | undefined,
      agent: args.values['agent'] as string | undefined,
    });
    for (const path of conflicts) ctx.stderr.write(`  ${visible(path)}\n`);
    ctx.stderr.write(`ags: ${task.task.name} resolves it. Watch it with: ags logs -f ${task.task.name}\n`);
    ctx.stdout.write(`${task.task.name}\n`);
    return EXIT.done;
  },
};
export default verb;
