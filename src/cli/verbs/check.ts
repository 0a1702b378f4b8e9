// cli/verbs/check.ts: `ags check [task] [paths...]`.
import { EXIT } from '../../protocol/errors.ts';
import type { ChecksFile } from '../../protocol/checks.ts';
import type { Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'run the checks on the result of a merge before merging',
  usage: 'check [task] [paths...]',
  takes: 'any',
  about:
    'Makes the merge that `ags merge` would make with the same arguments, and runs each command of `checks:` on exactly that tree in a fresh sandbox: with the network rules of the project, without its secrets, and with only the chosen files of the agent. Your files and branches do not change. The exit status is 6 if a check fails, 7 if there are conflicts.',
  examples: [
    'ags check fix-login-4kd2',
    'ags check @ src/ --into develop',
    "ags check @ --run 'npm test' --run 'npm run lint'",
    'ags check @ --risky package.json && ags merge @ --risky package.json',
  ],
  options: {
    into: { type: 'string', value: 'branch', about: 'target branch instead of the one the task started from' },
    risky: { type: 'string', multiple: true, value: 'path', about: 'take this one file that can run code; exact path' },
    run: {
      type: 'string',
      multiple: true,
      value: 'command',
      about: 'run this command instead of the configured checks',
    },
    json: { type: 'boolean', about: 'print the result as JSON, without the output of the checks' },
  },
  async run(args, ctx) {
    const { findWork } = await import('../../agent-run/find-work.ts');
    const { riskyPatterns } = await import('../../results/review.ts');
    const { runChecksHere, tellChecks } = await import('../review/run-checks.ts');
    const { values } = args;
    const task = await findWork(ctx.host, args.positionals[0], {
      say: (text) => void ctx.stderr.write(`ags: ${text}\n`),
    });
    const json = values['json'] === true;
    const [paths, risky] = [args.positionals.slice(1), (values['risky'] as string[] | undefined) ?? []];
    const into = values['into'] as string | undefined;
    const file = await runChecksHere(
      ctx,
      task,
      {
        paths,
        risky,
        riskyPatterns: await riskyPatterns(ctx.host, task.task.project),
        into,
        commands: (values['run'] as string[] | undefined) ?? [],
      },
      { quiet: json },
    );
    if (json) ctx.stdout.write(`${JSON.stringify({ task: task.task.name, ...resultOf(file) })}\n`);
    else {
      const more = [
        ...paths,
        ...risky.flatMap((path) => ['--risky', path]),
        ...(into === undefined ? [] : ['--into', into]),
      ];
      await tellChecks(ctx, task, file, ['ags', 'merge', task.task.name, ...more]);
    }
    return file.state === 'passed' ? EXIT.done : file.state === 'failed' ? EXIT.checks : EXIT.cancelled;
  },
};
export default verb;

function resultOf({ runner: _runner, layers: _layers, version: _version, ...file }: ChecksFile): object {
  return file;
}
