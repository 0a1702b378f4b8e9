// cli/verbs/undo.ts: `ags undo [task]`.
import { EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'take the last merge back',
  usage: 'undo [task]',
  about:
    'The last merge of this repository, or of one task. If the branch is still where the merge put it, it goes back; if there are commits on top, a new one takes the changes away again. Uncommitted work is never overwritten.',
  examples: ['ags undo', 'ags undo fix-login-4kd2'],
  options: { json: { type: 'boolean', about: 'what was done, as JSON' } },
  async run(args, ctx) {
    const { currentProject } = await import('../../queries/entries.ts');
    const { undoMerge } = await import('../../merge/undo.ts');
    const { visible } = await import('../../lib/sanitize.ts');
    const { meanwhile } = await import('../terminal/meanwhile.ts');
    const name = args.positionals[0];
    const { project, task } = await place();
    const undone = await meanwhile(ctx, 'Taking the merge back', undoMerge(ctx.world, project, task));
    if (args.values['json'] === true) ctx.stdout.write(`${JSON.stringify(undone)}\n`);
    else
      ctx.stderr.write(
        undone.from === undone.to
          ? `Nothing of ${undone.task} is on ${visible(undone.ref.replace('refs/heads/', ''))} any more.\n`
          : `The merge of ${undone.task} is undone: ${visible(undone.ref.replace('refs/heads/', ''))} is at ${undone.to.slice(0, 10)}${undone.reverted ? ', a commit that takes it back' : ''}. Its work is still on ags/${undone.task}.\n`,
      );
    return EXIT.done;

    async function place(): Promise<{ project: string; task: string | undefined }> {
      if (name === undefined) return { project: (await currentProject(ctx.world)) ?? ctx.cwd, task: undefined };
      const { findTask } = await import('../../queries/find-task.ts');
      const found = await findTask(ctx.world, name);
      return { project: found.task.project, task: found.task.id };
    }
  },
};
export default verb;
