// cli/verbs/start.ts: `ags start [name] "<goal>"`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { parseDuration } from '../../lib/units.ts';
import { readGiven } from '../read-given.ts';
import { inProject, RUN_OPTIONS, runFlags } from '../run-options.ts';
import type { Arguments, Context, Option, Verb } from '../verb.ts';

const { review: _review, name: _name, ...SANDBOX } = RUN_OPTIONS;

const OPTIONS = {
  agent: {
    type: 'string',
    short: 'a',
    multiple: true,
    value: 'name',
    about:
      'claude, codex, gemini, qwen, opencode, demo, or a command line; several, divided by commas, work side by side',
  },
  attempts: { type: 'string', short: 'n', value: 'number', about: 'let it be done this often, side by side' },
  file: {
    type: 'string',
    short: 'F',
    value: 'file',
    about: 'goals from a file ("-": standard input), one for each line or list item',
  },
  detach: { type: 'boolean', short: 'd', about: 'do not stay to watch' },
  interactive: { type: 'boolean', short: 'i', about: 'give the agent a terminal, to be used with "ags attach"' },
  base: { type: 'string', value: 'commit', about: 'begin from this branch, tag or commit instead of where you are' },
  model: { type: 'string', value: 'name', about: 'the model that the agent is told to use' },
  'max-time': { type: 'string', value: 'time', about: 'end it after 30m, 2h' },
  'max-cost': { type: 'string', value: 'dollars', about: 'end it when it has cost this much, where the agent knows' },
  'max-turns': { type: 'string', value: 'number', about: 'end it after this many steps' },
  'max-parallel': { type: 'string', value: 'number', about: 'how many agents may run at once; the others wait' },
  verbose: { type: 'boolean', short: 'v', about: 'show thoughts, and what commands print' },
  json: { type: 'boolean', about: 'events as JSON, one a line; with --detach the tasks' },
  ...SANDBOX,
} as const satisfies Record<string, Option>;

const verb: Verb = {
  summary: 'hand a goal to an agent, on a branch and in a sandbox of its own',
  usage: 'start [name] "<goal>" [--agent <name>]',
  about:
    'The agent works on a private copy of the commit you are on. You can go on working: it does not see what you change, and your\nfiles, branches and settings are not touched. What it did is on branch ags/<name> when it is done. Ctrl-C leaves it running.',
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
    const goals = readGoals(args);
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
    if (!json) ctx.stderr.write(`ags: ${first.task.name} (Ctrl-C leaves it running)\n`);
    const code = await followTask(first, { after: 0, verbose: args.values['verbose'] === true, json }, ctx);
    if (!json && code !== EXIT.cancelled) await next(first.task.id, ctx);
    return code;
  },
};
export default verb;

/** One positional is the goal, two are a name and the goal. */
function readGoals(args: Arguments): { name: string | null; text: string }[] {
  const file = string(args, 'file');
  const [one, two, ...more] = args.positionals;
  if (file !== null) {
    if (one !== undefined)
      throw new AgsError('usage.invalid', 'A goal was given on the command line and a file of goals as well.');
    const goals = splitGoals(readGiven('--file', file).toString('utf8'));
    if (goals.length === 0) throw new AgsError('usage.invalid', `There is no goal in ${file}.`);
    return goals.map((text) => ({ name: null, text }));
  }
  if (one === undefined)
    throw new AgsError('usage.invalid', 'What should the agent do?', {
      hint: 'For example: ags start "Make the date tests pass in any time zone" --agent claude',
    });
  if (more.length > 0)
    throw new AgsError('usage.invalid', 'The goal has to be one word for the shell.', {
      hint: 'Put it in quotes: ags start "Fix the date tests"',
    });
  if (two === undefined) return [{ name: null, text: one }];
  if (!/^[a-z0-9][a-z0-9-]{0,39}$/.test(one))
    throw new AgsError('usage.invalid', `"${one}" cannot be a name: small letters, digits and hyphens, up to 40.`, {
      hint: 'Or leave the name out, and put the goal in quotes.',
    });
  return [{ name: one, text: two }];
}

/** Lines, or items of a list; what is indented below an item belongs to it. Headings and empty lines divide. */
export function splitGoals(text: string): string[] {
  const lines = text.split(/\r?\n/);
  const hasItems = lines.some((line) => ITEM.test(line));
  if (!hasItems) return lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  const goals: string[] = [];
  let open = false;
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item !== null) {
      goals.push(item[1] ?? '');
      open = true;
    } else if (open && /^\s+\S/.test(line)) goals[goals.length - 1] += `\n${line.trim()}`;
    else if (line.trim() !== '') open = false;
  }
  return goals.map((goal) => goal.trim()).filter((goal) => goal !== '');
}

const ITEM = /^(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*\S)\s*$/;

/** "claude,codex" are two agents; a command line may have commas in it. */
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
      ? `ags: started. Sit down at its terminal with: ags attach ${first}\n`
      : names.length === 1
        ? `ags: started. Watch it with: ags logs -f ${first}\n`
        : `ags: ${names.length} tasks started. See them with: ags list --watch\n`,
  );
}

async function next(id: string, ctx: Context): Promise<void> {
  const { readTask } = await import('../../store/tasks.ts');
  const { nextSteps } = await import('./show.ts');
  const task = await readTask(ctx.stateDir, id);
  if (task !== null) ctx.stderr.write(nextSteps(task));
}
