// cli/verbs/shell.ts: `ags shell [command]`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import type { StoredTask } from '../../store/tasks.ts';
import { AGENT_OPTION, RUN_OPTIONS, runFlags, runInSandbox } from '../run-options.ts';
import type { Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'open a shell in a fresh sandbox, or in that of a running agent',
  usage: 'shell [options] [command] [arguments...] | shell <task> [command]',
  takes: 'any',
  about:
    'The same sandbox as "ags exec", with its own terminal: job control, resizing and full-screen programs work. With the\nname of a running task, the shell starts in that sandbox beside the agent, with the same files, network and limits.',
  examples: ['ags shell', 'ags shell bash --norc', 'ags shell vim src/main.ts', 'ags shell fix-date-tests'],
  passthrough: true,
  options: { ...RUN_OPTIONS, ...AGENT_OPTION },
  async run(args, ctx) {
    if (!ctx.stdin.isTTY || !ctx.stdout.isTTY)
      throw new AgsError('usage.no-terminal', 'ags shell needs a terminal.', {
        hint: 'In a script, use: ags exec -- <command>',
      });
    const beside = await findAgent(ctx, args.positionals[0]);
    if (beside !== null) {
      const { openGuest } = await import('../terminal/guest-terminal.ts');
      return (await openGuest(ctx, beside, { do: 'shell', argv: args.positionals.slice(1) })) ?? EXIT.done;
    }
    return runInSandbox('shell', args.positionals, runFlags(args), args, ctx);
  },
};
export default verb;

/** Only a complete task name counts; any other word is a command. */
async function findAgent(ctx: Context, name: string | undefined): Promise<StoredTask | null> {
  if (name === undefined || !/^[a-z0-9][a-z0-9-]{0,62}$/.test(name)) return null;
  const { readTask } = await import('../../store/tasks.ts');
  const task = await readTask(ctx.stateDir, name);
  if (task?.task.goal === undefined) return null;
  const { isLive } = await import('../../agent-run/control.ts');
  if (isLive(task)) return task;
  throw new AgsError('usage.invalid', `${name} is not running.`, {
    hint: `To continue it: ags send ${name} "<message>". To see its changes: ags diff ${name}`,
  });
}
