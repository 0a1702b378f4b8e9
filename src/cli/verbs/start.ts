// cli/verbs/start.ts: `ags start [name] "<goal>"`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { parseDuration } from '../../lib/units.ts';
import { visible } from '../../lib/sanitize.ts';
import { readGoalsFile } from '../goals-file.ts';
import { readGiven } from '../read-given.ts';
import { count, cut } from '../terminal/format.ts';
import { inProject, RUN_OPTIONS, runFlags } from '../run-options.ts';
import type { Arguments, Context, Option, Verb } from '../verb.ts';

const { review: _review, name: _name, ...SANDBOX } = RUN_OPTIONS;

const OPTIONS = {
  agent: {
    type: 'string',
    short: 'a',
    multiple: true,
    value: 'agent',
    about:
      'claude, codex, gemini, qwen, opencode, demo, or a command line; several names, separated by commas, run in parallel',
  },
  attempts: { type: 'string', short: 'n', value: 'number', about: 'run this many attempts in parallel' },
  file: {
    type: 'string',
    short: 'F',
    value: 'file',
    about: 'read goals from a file ("-": standard input), one per line or list item',
  },
  'dry-run': { type: 'boolean', about: 'only print the goals that would be started' },
  detach: { type: 'boolean', short: 'd', about: 'return at once instead of following the task' },
  interactive: { type: 'boolean', short: 'i', about: 'give the agent a terminal; connect to it with "ags attach"' },
  base: {
    type: 'string',
    value: 'commit',
    about: 'start from this branch, tag or commit instead of the current commit',
  },
  model: { type: 'string', value: 'name', about: 'the model for the agent' },
  'max-time': { type: 'string', value: 'time', about: 'stop it after this time: 30m, 2h' },
  'max-cost': { type: 'string', value: 'dollars', about: 'stop it at this cost, if the agent reports its cost' },
  'max-turns': { type: 'string', value: 'number', about: 'stop it after this many steps' },
  'max-parallel': { type: 'string', value: 'number', about: 'number of agents that run at the same time; others wait' },
  verbose: { type: 'boolean', short: 'v', about: 'show thoughts and command output' },
  json: { type: 'boolean', about: 'print events as JSON, one per line; with --detach, the task names' },
  ...SANDBOX,
} as const satisfies Record<string, Option>;

const verb: Verb = {
  summary: 'give a goal to an agent, with its own branch and sandbox',
  usage: 'start [name] "<goal>" [--agent <agent>]',
  takes: 2,
  instead: 'Put the goal in quotes: ags start "Fix the date tests"',
  about:
    'The agent works on a private copy of your current commit. You can keep working: the agent does not see your edits, and it cannot\nchange your files, branches or settings. Its work appears on branch ags/<name>. Ctrl-C detaches; the agent keeps running.',
  examples: [
    'ags start "Make the date tests pass in any time zone" --agent claude',
    'ags start login-limit "Add rate limiting to the login" -a codex -d',
    'ags start "Index the help pages" -a claude,codex --attempts 2',
    'ags start --file goals.md -a claude --max-cost 2 -d',
    'ags start "Show me around" --agent demo',
  ],
  options: OPTIONS,
  async run(args, ctx) {
    const { startTasks } = await import('../../agent-run/start.ts');
    const { followTask } = await import('../terminal/follow-task.ts');
    const goals = readGoals(args, ctx);
    if (args.values['dry-run'] === true) {
      for (const { text } of goals) ctx.stdout.write(`${cut(visible(text.split('\n')[0] ?? ''), 100)}\n`);
      ctx.stderr.write(`ags: ${count(goals.length, 'goal')}; nothing was started.\n`);
      return EXIT.done;
    }
    const made = await startTasks(inProject(args, ctx), {
      goals,
      agents: list(args, 'agent').flatMap(splitAgents),
      attempts: whole(args, 'attempts', 1, 16) ?? 1,
      interactive: args.values['interactive'] === true,
      base: string(args, 'base'),
      model: string(args, 'model'),
      maxSeconds: duration(args),
      maxCostMicros: dollars(args),
      maxTurns: whole(args, 'max-turns', 1, 100_000),
      parallel: whole(args, 'max-parallel', 1, 64),
      flags: runFlags(args),
    });
    const json = args.values['json'] === true;
    const [first] = made;
    if (first === undefined) return EXIT.done;
    const staying = args.values['detach'] !== true && made.length === 1 && !first.task.goal?.interactive;
    if (!staying) {
      if (json) ctx.stdout.write(`${JSON.stringify({ tasks: made.map(({ task }) => task.name) })}\n`);
      else
        tell(
          made.map(({ task }) => task.name),
          first.task.goal?.interactive === true,
          ctx,
        );
      return EXIT.done;
    }
    if (!json) ctx.stderr.write(`ags: ${first.task.name} (Ctrl-C detaches; the agent keeps running)\n`);
    const code = await followTask(first, { after: 0, verbose: args.values['verbose'] === true, json }, ctx);
    if (!json) await next(first.task.id, ctx);
    return code;
  },
};
export default verb;

/** One positional is the goal, two are a name and the goal. */
function readGoals(args: Arguments, ctx: Context): { name: string | null; text: string }[] {
  const file = string(args, 'file');
  const [one, two] = args.positionals;
  if (file !== null) {
    if (one !== undefined) throw new AgsError('usage.invalid', 'Give either a goal or --file, not both.');
    const { goals, leftOut } = readGoalsFile(readGiven('--file', file).toString('utf8'));
    for (const { line, text, why } of leftOut)
      ctx.stderr.write(`ags: line ${line} left out (${why}): ${cut(visible(text), 60)}\n`);
    if (goals.length === 0) throw new AgsError('usage.invalid', `There is no goal in ${file}.`);
    return goals.map((text) => ({ name: null, text }));
  }
  if (one === undefined)
    throw new AgsError('usage.invalid', 'What should the agent do?', {
      hint: 'For example: ags start "Make the date tests pass in any time zone" --agent claude',
    });
  if (two === undefined) return [{ name: null, text: one }];
  if (!/^[a-z0-9][a-z0-9-]{0,39}$/.test(one))
    throw new AgsError(
      'usage.invalid',
      `"${one}" is not a valid name: use up to 40 lowercase letters, digits and hyphens.`,
      {
        hint: 'Or leave out the name and put the goal in quotes: ags start "<goal>"',
      },
    );
  return [{ name: one, text: two }];
}

/** "claude,codex" names two agents; a command line may contain commas. */
function splitAgents(text: string): string[] {
  return /^[a-z][a-z0-9-]*(,[a-z][a-z0-9-]*)+$/.test(text) ? text.split(',') : [text];
}

function string(args: Arguments, name: string): string | null {
  const value = args.values[name];
  return typeof value === 'string' ? value : null;
}

function list(args: Arguments, name: string): string[] {
  return (args.values[name] as string[] | undefined) ?? [];
}

function whole(args: Arguments, name: string, least: number, most: number): number | null {
  const value = string(args, name);
  if (value === null) return null;
  const number = /^\d{1,6}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw new AgsError('usage.invalid', `--${name} is a number from ${least} to ${most}, not "${value}".`);
}

function duration(args: Arguments): number | null {
  const value = string(args, 'max-time');
  if (value === null) return null;
  const seconds = parseDuration(value);
  if (seconds !== undefined && seconds > 0) return seconds;
  throw new AgsError('usage.invalid', `--max-time is a time such as 30m or 2h, not "${value}".`);
}

function dollars(args: Arguments): number | null {
  const value = string(args, 'max-cost');
  if (value === null) return null;
  if (/^\$?\d{1,6}(\.\d{1,6})?$/.test(value) && Number(value.replace('$', '')) > 0)
    return Math.round(Number(value.replace('$', '')) * 1e6);
  throw new AgsError('usage.invalid', `--max-cost is an amount in dollars such as 2.50, not "${value}".`);
}

function tell(names: readonly string[], interactive: boolean, ctx: Context): void {
  for (const name of names) ctx.stdout.write(`${name}\n`);
  const [first = ''] = names;
  ctx.stderr.write(
    interactive
      ? `ags: started. Connect to its terminal: ags attach ${first}\n`
      : names.length === 1
        ? `ags: started. Follow it: ags logs -f ${first}\n`
        : `ags: ${names.length} tasks started. Watch them: ags list --watch\n`,
  );
}

async function next(id: string, ctx: Context): Promise<void> {
  const { readTask } = await import('../../store/tasks.ts');
  const { nextSteps } = await import('../terminal/next-steps.ts');
  const { isUnderWay } = await import('../../protocol/run-state.ts');
  const task = await readTask(ctx.stateDir, id);
  // A user who left while it runs knows what to do next.
  if (task !== null && !(task.live && isUnderWay(task.run.state))) ctx.stderr.write(nextSteps(task));
}
