// cli/verbs/exec.ts: `ags exec -- <command>`.
import { AgsError } from '../../protocol/errors.ts';
import { AGENT_OPTION, RUN_OPTIONS, runFlags, runInSandbox } from '../run-options.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'run a command on this repository in a fresh sandbox',
  usage: 'exec [options] -- <command> [arguments...] | exec --in <task> -- <command>',
  takes: 'any',
  about:
    'The command sees the repository at its usual path, copy-on-write: the original is never written. Your home, your other\nprojects and the rest of the machine do not exist inside; the network has only hosts that rules allow (ags help network). Afterwards you review the changes.\nWith --in, the command runs beside the agent of a running task, in the same sandbox, with no terminal.',
  examples: [
    'ags exec -- npm test',
    'ags exec --limit time=10m -- make',
    'ags exec --allow api.example.com --tcp db=localhost:5432 -- npm test',
    'ags exec --reveal .env -- ./run-with-secrets.sh',
    'git diff | ags exec -- python3 check.py | less',
    'ags exec --in fix-date-tests -- git status --short',
  ],
  passthrough: true,
  options: {
    in: { type: 'string', value: 'task', about: 'run it in the sandbox of this running task, beside its agent' },
    ...RUN_OPTIONS,
    ...AGENT_OPTION,
  },
  async run(args, ctx) {
    if (args.positionals.length === 0)
      throw new AgsError('usage.invalid', 'What should run in the sandbox?', {
        hint: 'For example: ags exec -- npm test',
      });
    if (args.values['in'] !== undefined) return runInTask(String(args.values['in']), args, ctx);
    return runInSandbox('exec', args.positionals, runFlags(args), args, ctx);
  },
};
export default verb;

/** The sandbox has its rules already, so no other option can be given. */
async function runInTask(name: string, { values, positionals }: Arguments, ctx: Context): Promise<number> {
  const other = Object.keys(values).find((key) => key !== 'in');
  if (other !== undefined)
    throw new AgsError('usage.invalid', `--in takes no --${other}: the sandbox of ${name} is running already.`, {
      hint: `To change its network rules: ags allow <host>, ags deny <host>`,
    });
  const { findTask } = await import('../../queries/find-task.ts');
  const stored = await findTask(ctx.host, name);
  if (stored.task.goal === undefined)
    throw new AgsError(
      'usage.invalid',
      `${stored.task.name} is a command. Only the sandbox of an agent can be joined.`,
      {
        hint: 'Tasks with an agent: ags list',
      },
    );
  const { runBeside } = await import('../../exec/run-beside.ts');
  const code = await runBeside(stored, positionals, ctx);
  if (code === NOT_FOUND) {
    const { whyNotFoundBeside } = await import('../../exec/not-found.ts');
    const why = stored.run.image === undefined ? whyNotFoundBeside(ctx.host, stored.task.name, positionals) : null;
    if (why !== null) ctx.stderr.write(`ags: ${why}\n`);
  }
  return code;
}

const NOT_FOUND = 127;
