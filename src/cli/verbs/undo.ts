// cli/verbs/undo.ts: `ags undo [task]`.
import { EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'undo the last merge',
  usage: 'undo [task]',
  about:
    'Undoes the last merge of this repository, or of one task. If the merge is the last commit of the branch, the branch moves back; otherwise a new commit reverts the changes. Uncommitted work is never overwritten.',
  examples: ['ags undo', 'ags undo fix-login-4kd2'],
  options: { json: { type: 'boolean', about: 'print the result as JSON' } },
  async run(args, ctx) {
    const { currentProject } = await import('../../queries/entries.ts');
    const { undoMerge } = await import('../../merge/undo.ts');
    const { visible } = await import('../../lib/sanitize.ts');
    const { meanwhile } = await import('../terminal/meanwhile.ts');
    const name = args.positionals[0];
    const { project, task } = await place();
    const undone = await meanwhile(ctx, 'Undoing the merge', undoMerge(ctx.host, project, task));
    if (args.values['json'] === true) ctx.stdout.write(`${JSON.stringify(undone)}\n`);
    else
      ctx.stderr.write(
        undone.from === undone.to
          ? `${visible(undone.ref.replace('refs/heads/', ''))} no longer has any changes of ${undone.task}.\n`
          : `Undid the merge of ${undone.task}: ${visible(undone.ref.replace('refs/heads/', ''))} is at ${undone.to.slice(0, 10)}${undone.reverted ? ', a commit that reverts it' : ''}. Its work is still on ags/${undone.task}.\n`,
      );
    return EXIT.done;

    async function place(): Promise<{ project: string; task: string | undefined }> {
      if (name === undefined) return { project: (await currentProject(ctx.host)) ?? ctx.cwd, task: undefined };
      const { findTask } = await import('../../queries/find-task.ts');
      const found = await findTask(ctx.host, name);
      return { project: found.task.project, task: found.task.id };
    }
  },
};
export default verb;
