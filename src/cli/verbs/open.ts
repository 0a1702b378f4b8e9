// cli/verbs/open.ts: `ags open <task> [--ide <editor>]`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'open the work of an agent in your editor, in its own directory',
  usage: 'open <task> [--ide {code|cursor|idea|...}] [--devcontainer]',
  takes: 1,
  about:
    "Checks the branch of the task out into its own directory and repository; the agent's live files are not touched. An agent wrote these files: do not let the editor trust them. With --devcontainer, the editor opens them in a container with the rules of a sandbox, where trusting them is less dangerous. To send your commits back to the branch: git push origin. An existing directory opens as it is, with your changes.",
  examples: [
    'ags open fix-login --ide code',
    'ags open fix-login --ide code --devcontainer',
    'ags open @ --print',
    'ags open fix-login --remove',
  ],
  options: {
    ide: { type: 'string', value: 'editor', about: 'the editor; the default is the first one in PATH' },
    devcontainer: { type: 'boolean', about: 'open it in a dev container with the rules of your project' },
    fresh: { type: 'boolean', about: 'check it out again and delete your changes in the directory' },
    print: { type: 'boolean', about: 'print the directory and start no editor' },
    remove: { type: 'boolean', about: 'delete the directory' },
    json: { type: 'boolean', about: 'print one JSON document' },
  },
  async run({ values, positionals }, ctx) {
    if (positionals.length !== 1)
      throw new AgsError('usage.invalid', 'Which task should be opened?', {
        hint: 'The latest of this project: ags open @',
      });
    const { EDITORS } = await import('../open-editor.ts');
    const ide = values['ide'];
    if (typeof ide === 'string' && !Object.hasOwn(EDITORS, ide))
      throw new AgsError('usage.invalid', `ags knows no editor "${ide}".`, {
        hint: `There are: ${Object.keys(EDITORS).join(', ')}. For another: ags open <task> --print`,
      });
    const { findWork } = await import('../../agent-run/find-work.ts');
    const task = await findWork(ctx.host, positionals[0]);
    if (values['remove'] === true) {
      const { removeOpened } = await import('../../projects/open-task.ts');
      ctx.stderr.write(
        removeOpened(ctx.host, task) ? 'ags: The directory was deleted.\n' : 'ags: There is no such directory.\n',
      );
      return EXIT.done;
    }
    const { openInEditor } = await import('../open-editor.ts');
    return openInEditor(ctx, task, {
      ide: typeof ide === 'string' ? ide : null,
      devContainer: values['devcontainer'] === true,
      fresh: values['fresh'] === true,
      print: values['print'] === true,
      json: values['json'] === true,
    });
  },
};
export default verb;
