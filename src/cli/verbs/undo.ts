// cli/verbs/undo.ts: `ags undo [task]`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'undo the last merge',
  usage: 'undo [task]',
  takes: 1,
  instead: 'Undo merges one after the other.',
  about:
    'Undoes the last merge of this repository, or of one task. If the merge is the last commit of the branch, the branch moves back; otherwise a new commit reverts the changes. Uncommitted work is never overwritten.',
  examples: ['ags undo', 'ags undo fix-login-4kd2'],
  options: { json: { type: 'boolean', about: 'print the result as JSON' } },
  async run(args, ctx) {
    const { currentProject } = await import('../../queries/entries.ts');
    const { undoMerge } = await import('../../merge/undo.ts');
    const { visible } = await import('../../lib/sanitize.ts');
    const { meanwhile } = await import('../terminal/meanwhile.ts');
    const [name] = args.positionals;
    const { project, task } = await place();
    const undone = await meanwhile(ctx, 'Undoing the merge', undoMerge(ctx.host, project, task));
    const target = visible(undone.ref.replace('refs/heads/', ''));
    const how = undone.reverted ? ', a commit that reverts it' : '';
    const work = undone.restored ? `is on ${undone.branch} again` : `is still on ${undone.branch}`;
    if (args.values['json'] === true) ctx.stdout.write(`${JSON.stringify(undone)}\n`);
    else
      ctx.stderr.write(
        undone.from === undone.to
          ? `${target} no longer has any changes of ${undone.task}.\n`
          : `Undid the merge of ${undone.task}: ${target} is at ${undone.to.slice(0, 10)}${how}. Its work ${work}.\n`,
      );
    return EXIT.done;

    async function place(): Promise<{ project: string; task: string | undefined }> {
      const here = (await currentProject(ctx.host)) ?? ctx.cwd;
      if (name === undefined) return { project: here, task: undefined };
      const { findTask } = await import('../../queries/find-task.ts');
      try {
        const found = await findTask(ctx.host, name);
        return { project: found.task.project, task: found.task.id };
      } catch (error) {
        // The task may have been removed since its merge.
        if (error instanceof AgsError && error.code === 'task.not-found') return { project: here, task: name };
        throw error;
      }
    }
  },
};
export default verb;
