// cli/verbs/check.ts: `ags check [task...] [paths...]`.
import { EXIT } from '../../protocol/errors.ts';
import type { ChecksFile } from '../../protocol/checks.ts';
import type { Done } from '../several.ts';
import type { StoredTask } from '../../store/tasks.ts';
import type { Arguments, Context, Verb } from '../verb.ts';

const verb: Verb = {
  summary: 'run the checks on the result of a merge before merging',
  usage: 'check [task...] [--] [paths...]',
  takes: 'any',
  about:
    'Makes the merge that `ags merge` would make with the same arguments, and runs each command of `checks:` on exactly that tree in a fresh sandbox: with the network rules of the project, without its secrets, and with only the chosen files of the agent. Your files and branches do not change. The exit status is 6 if a check fails, 7 if there are conflicts.',
  examples: [
    'ags check fix-login-4kd2',
    'ags check @ src/ --into develop',
    'ags check --ready',
    "ags check @ --run 'npm test' --run 'npm run lint'",
    'ags check @ --risky package.json && ags merge @ --risky package.json',
  ],
  options: {
    ready: { type: 'boolean', about: 'every task of this project that is ready' },
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
    const { eachTask, findTasks, readyTasks, refuseNamesBeside, tasksAndPaths } = await import('../several.ts');
    const { findWork } = await import('../../agent-run/find-work.ts');
    const json = args.values['json'] === true;
    const { names, paths } = await tasksAndPaths(args, ctx);
    const find = (name: string | undefined): Promise<StoredTask> =>
      findWork(ctx.host, name, { say: (text) => void ctx.stderr.write(`ags: ${text}\n`) });
    const ready = refuseNamesBeside({ positionals: names, values: args.values }, 'check', 'ready');
    if (!ready && names.length === 0) return (await checkOne(await find(undefined), paths, args, ctx)).exit;
    const tasks = await findTasks(ctx, ready ? await readyTasks(ctx) : names, find);
    if (tasks.length === 0) ctx.stderr.write('ags: no task of this project is ready.\n');
    return eachTask(ctx, tasks, json, (task) => checkOne(task, paths, args, ctx));
  },
};
export default verb;

async function checkOne(
  task: StoredTask,
  paths: readonly string[],
  { values }: Arguments,
  ctx: Context,
): Promise<Done> {
  const { riskyPatterns } = await import('../../results/review.ts');
  const { runChecksHere, tellChecks } = await import('../review/run-checks.ts');
  const json = values['json'] === true;
  const risky = (values['risky'] as string[] | undefined) ?? [];
  const into = values['into'] as string | undefined;
  const request = {
    paths,
    risky,
    riskyPatterns: await riskyPatterns(ctx.host, task.task.project),
    into,
    commands: (values['run'] as string[] | undefined) ?? [],
  };
  const file = await runChecksHere(ctx, task, request, { quiet: json });
  if (json) ctx.stdout.write(`${JSON.stringify({ task: task.task.name, ...resultOf(file) })}\n`);
  else {
    const more = [
      ...paths,
      ...risky.flatMap((path) => ['--risky', path]),
      ...(into === undefined ? [] : ['--into', into]),
    ];
    await tellChecks(ctx, task, file, ['ags', 'merge', task.task.name, ...more]);
  }
  if (file.state === 'passed') return { exit: EXIT.done, word: 'passed' };
  if (file.state === 'failed') return { exit: EXIT.checks, word: 'failed' };
  return { exit: EXIT.cancelled, word: 'stopped', stop: true };
}

function resultOf({ runner: _runner, layers: _layers, version: _version, ...file }: ChecksFile): object {
  return file;
}
