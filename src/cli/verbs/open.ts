// cli/verbs/open.ts: `ags open <task> [--ide <editor>]`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'open what an agent did in your editor, in a directory of its own',
  usage: 'open <task> [--ide {code|cursor|idea|...}] [--devcontainer]',
  about:
    "The branch of the task, as it was brought out, in a directory of its own with a repository of its own; the agent's live files are not touched. They are an agent's files: do not let the editor trust them. With --devcontainer it opens them in a container with the rules of a sandbox, where trusting them harms less. What you commit there goes back with: git push origin. A directory that is there already is opened as it is, with what you did in it.",
  examples: [
    'ags open fix-login --ide code',
    'ags open fix-login --ide code --devcontainer',
    'ags open @ --print',
    'ags open fix-login --remove',
  ],
  options: {
    ide: { type: 'string', value: 'editor', about: 'which editor; without it, the first that is in PATH' },
    devcontainer: { type: 'boolean', about: 'open it in a dev container, made from the rules of your project' },
    fresh: { type: 'boolean', about: 'make the directory anew; what was done in it is thrown away' },
    print: { type: 'boolean', about: 'make the directory and print it; start no editor' },
    remove: { type: 'boolean', about: 'throw the directory away' },
    json: { type: 'boolean', about: 'print one JSON document' },
  },
  async run({ values, positionals }, ctx) {
    if (positionals.length !== 1)
      throw new AgsError('usage.invalid', 'Which task should be opened?', {
        hint: 'The latest of this project: ags open @',
      });
    const { EDITORS } = await import('../editors.ts');
    const ide = values['ide'];
    if (typeof ide === 'string' && !Object.hasOwn(EDITORS, ide))
      throw new AgsError('usage.invalid', `ags knows no editor "${ide}".`, {
        hint: `There are: ${Object.keys(EDITORS).join(', ')}. For another: ags open <task> --print`,
      });
    const { findTask } = await import('../../queries/find-task.ts');
    const task = await findTask(ctx.world, positionals[0], { work: true });
    if (values['remove'] === true) {
      const { removeOpened } = await import('../../projects/open-task.ts');
      ctx.stderr.write(removeOpened(ctx.world, task) ? 'ags: The directory is gone.\n' : 'ags: It was not open.\n');
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
