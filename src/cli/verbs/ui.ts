// cli/verbs/ui.ts: `ags ui`.
import { AgsError } from '../../protocol/errors.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'follow, answer, review and merge tasks on a full screen',
  usage: 'ui',
  takes: 0,
  instead: 'For one task: ags logs -f <task>',
  about:
    'Lists the tasks of this project and keeps the list up to date. Keys show the log or the changes of a task, answer its question, allow a host, attach to it, stop, continue or merge it; ? lists them. Nothing changes before you have confirmed it.',
  examples: ['ags ui'],
  options: {},
  async run(_args, ctx) {
    if (!ctx.terminal.stdin || !ctx.terminal.stdout)
      throw new AgsError('usage.no-terminal', 'ags ui needs a terminal for its keys and its screen.', {
        hint: 'In a script: ags list --json, ags logs -f <task> --json',
      });
    const term = ctx.env['TERM'] ?? '';
    if (term === '' || term === 'dumb')
      throw new AgsError(
        'usage.no-terminal',
        `This terminal cannot draw a full screen (TERM is ${term === '' ? 'not set' : term}).`,
        { hint: 'Without one: ags list --watch, ags logs -f <task>' },
      );
    const { runUi } = await import('../ui/app.ts');
    return runUi(ctx);
  },
};
export default verb;
