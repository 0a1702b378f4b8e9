// cli/verbs/shell.ts: `ags shell [command]`.
import { AgsError } from '../../protocol/errors.ts';
import { RUN_OPTIONS, runFlags, runInSandbox } from '../run-options.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'open a shell in a fresh sandbox',
  usage: 'shell [options] [command] [arguments...]',
  about:
    'The same sandbox as "ags exec", interactive: a terminal of its own, with job control, resizing and full-screen programs.',
  examples: ['ags shell', 'ags shell bash --norc', 'ags shell vim src/main.ts', 'ags shell claude'],
  passthrough: true,
  options: RUN_OPTIONS,
  async run(args, ctx) {
    if (!ctx.stdin.isTTY || !ctx.stdout.isTTY)
      throw new AgsError('usage.no-terminal', 'ags shell needs a terminal.', {
        hint: 'In a script use: ags exec -- <command>',
      });
    const command = args.positionals.length > 0 ? args.positionals : [ctx.world.shell];
    return runInSandbox('shell', command, runFlags(args), args, ctx);
  },
};
export default verb;
