// cli/verbs/start.ts: `ags start [name] "<goal>"`.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { visible } from '../../lib/sanitize.ts';
import type { StartGoal } from '../../agent-run/start.ts';
import type { WrittenGoal } from '../goal-editor.ts';
import { readGoalsFile, TASK_NAME } from '../goals-file.ts';
import { readDollars, readDuration, readTokens, readWhole } from '../limit-values.ts';
import { readGiven } from '../read-given.ts';
import { count, cut, table } from '../terminal/format.ts';
import { inProject, RUN_OPTIONS, runFlags } from '../run-options.ts';
import type { StoredTask } from '../../store/tasks.ts';
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
  edit: { type: 'boolean', about: 'write the goal in $VISUAL or $EDITOR, as without a goal on a terminal' },
  'dry-run': { type: 'boolean', about: 'only print the tasks that would be started' },
  detach: { type: 'boolean', short: 'd', about: 'return at once instead of following the task' },
  interactive: {
    type: 'boolean',
    short: 'i',
    about: 'give the agent a terminal, and connect to it, unless --detach is given; later: "ags attach"',
  },
  base: {
    type: 'string',
    value: 'commit',
    about: 'start from this branch, tag or commit instead of the current commit',
  },
  model: { type: 'string', value: 'name', about: 'the model for the agent' },
  'max-time': { type: 'string', value: 'time', about: 'stop it after this time: 30m, 2h' },
  'max-cost': { type: 'string', value: 'dollars', about: 'stop it at this cost, by the list price of its model' },
  'max-tokens': { type: 'string', value: 'number', about: 'stop it after this many tokens: 500000, 2m' },
  'max-turns': { type: 'string', value: 'number', about: 'stop it after this many answers of its model' },
  'max-parallel': { type: 'string', value: 'number', about: 'number of agents that run at the same time; others wait' },
  verbose: { type: 'boolean', short: 'v', about: 'show thoughts and command output' },
  json: { type: 'boolean', about: 'print events as JSON, one per line; with --detach, the task names' },
  ...SANDBOX,
} as const satisfies Record<string, Option>;

const verb: Verb = {
  summary: 'give a goal to an agent, with its own branch and sandbox',
  usage: 'start [name] ["<goal>"] [--agent <agent>]',
  takes: 2,
  instead: 'Put the goal in quotes: ags start "Fix the date tests"',
  about:
    'The agent works on a private copy of your current commit. You can keep working: the agent does not see your edits, and it cannot\nchange your files, branches or settings. Its work appears on branch ags/<name>. Ctrl-C detaches; the agent keeps running.\nIn a goals file, a goal may have settings in brackets: "- Fix the login (name: login, agent: codex, max-cost: 2, after: setup)". It then begins after the task setup has ended well, from its result.',
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
    const written = await writeInEditor(args, ctx);
    if (written === 'empty') {
      ctx.stderr.write('ags: The goal is empty; nothing was started.\n');
      return EXIT.cancelled;
    }
    const goals = readGoals(written === null ? args.positionals : [...written.name, written.text], args, ctx);
    if (args.values['dry-run'] === true) {
      ctx.stdout.write(await dryRun(goals, args, ctx));
      ctx.stderr.write(`ags: ${count(goals.length, 'goal')}; nothing was started.\n`);
      written?.keep();
      return EXIT.done;
    }
    // A user who follows the task reads its log.
    const follows = args.values['detach'] !== true && args.values['interactive'] !== true;
    const starting = startTasks(
      inProject(args, ctx),
      {
        goals,
        agents: list(args, 'agent').flatMap(splitAgents),
        interactive: args.values['interactive'] === true,
        base: string(args, 'base'),
        model: string(args, 'model'),
        ...limitsOf(args),
        flags: runFlags(args),
      },
      follows ? undefined : (text) => void ctx.stderr.write(`ags: ${text}\n`),
    );
    const made = await starting.catch((error: unknown) => {
      written?.keep();
      throw error;
    });
    written?.drop();
    const json = args.values['json'] === true;
    const [first] = made;
    if (first === undefined) return EXIT.done;
    const interactive = first.task.goal?.interactive === true;
    const staying = args.values['detach'] !== true && made.length === 1;
    if (staying && interactive && !json && ctx.stdin.isTTY && ctx.stdout.isTTY) return attach(first, ctx);
    if (!staying || interactive) {
      if (json) ctx.stdout.write(`${JSON.stringify({ tasks: made.map(({ task }) => task.name) })}\n`);
      else
        tell(
          made.map(({ task }) => task.name),
          interactive,
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

/** null: the goal is given in another way. A goal beside --edit is the text to begin with. */
async function writeInEditor(
  args: Arguments,
  ctx: Context,
): Promise<(WrittenGoal & { name: string[] }) | 'empty' | null> {
  const edit = args.values['edit'] === true;
  const [one, two] = args.positionals;
  if (edit && string(args, 'file') !== null)
    throw new AgsError('usage.invalid', 'Give either --edit or --file, not both.');
  const none = one === undefined && string(args, 'file') === null && ctx.terminal.stdin && ctx.terminal.stdout;
  if (!edit && !none) return null;
  const { writeGoal } = await import('../goal-editor.ts');
  const written = writeGoal(ctx, two ?? one ?? '');
  return written === null ? 'empty' : { ...written, name: two === undefined ? [] : [one ?? ''] };
}

/** One positional is the goal, two are a name and the goal. */
function readGoals([one, two]: readonly string[], args: Arguments, ctx: Context): StartGoal[] {
  const file = string(args, 'file');
  if (file !== null) {
    if (one !== undefined) throw new AgsError('usage.invalid', 'Give either a goal or --file, not both.');
    const { goals, leftOut } = readGoalsFile(readGiven('--file', file).toString('utf8'));
    for (const { line, text, why } of leftOut)
      ctx.stderr.write(`ags: line ${line} left out (${why}): ${cut(visible(text), 60)}\n`);
    if (goals.length === 0)
      throw new AgsError('usage.invalid', `There is no goal in ${file === '-' ? 'the input' : file}.`);
    return goals.map(({ line, name, ...goal }) => ({ ...goal, name: name ?? null, at: `Line ${line}` }));
  }
  if (one === undefined)
    throw new AgsError('usage.invalid', 'What should the agent do?', {
      hint: 'For example: ags start "Make the date tests pass in any time zone" --agent claude',
    });
  if (two === undefined) return [{ name: null, text: one }];
  if (!TASK_NAME.test(one))
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

function limitsOf(args: Arguments) {
  const read = <T>(name: string, parse: (value: string, label: string) => T): T | null => {
    const value = string(args, name);
    return value === null ? null : parse(value, `--${name}`);
  };
  return {
    maxSeconds: read('max-time', readDuration),
    maxCostMicros: read('max-cost', readDollars),
    maxTurns: read('max-turns', (value, label) => readWhole(value, label, 1, 100_000)),
    maxTokens: read('max-tokens', readTokens),
    attempts: read('attempts', (value, label) => readWhole(value, label, 1, 16)) ?? 1,
    parallel: read('max-parallel', (value, label) => readWhole(value, label, 1, 64)),
  };
}

/** The tasks as they would be started, in their order. */
async function dryRun(goals: readonly StartGoal[], args: Arguments, ctx: Context): Promise<string> {
  const { orderGoals } = await import('../../agent-run/goal-order.ts');
  const { loadConfig } = await import('../../config/load.ts');
  const { configInput } = await import('./config.ts');
  const { slug, taskIds } = await import('../../store/tasks.ts');
  const { formatDuration } = await import('../../lib/units.ts');
  const { tasks: usual, agents: own } = await loadConfig(await configInput(ctx, inProject(args, ctx).cwd));
  const limits = limitsOf(args);
  const existing = taskIds(ctx.stateDir);
  const agents = list(args, 'agent').flatMap(splitAgents);
  const rows = orderGoals(goals, (name) => existing.includes(name)).map((goal): string[] => {
    const seconds = goal.maxSeconds ?? limits.maxSeconds ?? usual.seconds;
    const micros = goal.maxCostMicros ?? limits.maxCostMicros ?? usual.costMicros;
    const agent = goal.agent ?? (agents.length > 0 ? agents.join(', ') : (usual.agent ?? ''));
    const tokens = goal.maxTokens ?? limits.maxTokens ?? usual.tokens;
    const turns = goal.maxTurns ?? limits.maxTurns ?? usual.turns;
    return [
      goal.name ?? slug(goal.text.split('\n')[0] ?? '', 32),
      [agent, goal.model ?? string(args, 'model') ?? own[agent]?.model ?? usual.model]
        .filter((text) => text != null && text !== '')
        .join(' '),
      [
        ...(seconds === null ? [] : [formatDuration(seconds)]),
        ...(micros === null ? [] : [`$${(micros / 1e6).toFixed(2)}`]),
        ...(tokens === null ? [] : [count(tokens, 'token')]),
        ...(turns === null ? [] : [count(turns, 'turn')]),
      ].join(', '),
      goal.after ?? '',
      cut(goal.text.split('\n')[0] ?? '', 60),
    ];
  });
  return table([['NAME', 'AGENT', 'LIMITS', 'AFTER', 'GOAL'], ...rows]);
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

async function attach(task: StoredTask, ctx: Context): Promise<number> {
  const { openGuest } = await import('../terminal/guest-terminal.ts');
  const { waitUntilOver } = await import('../../agent-run/control.ts');
  ctx.stderr.write(`ags: ${task.task.name}\n`);
  const code = await openGuest(ctx, task, { do: 'attach' });
  if (code === null) return EXIT.done;
  // Its work is brought onto the branch.
  await waitUntilOver(ctx.host, task.task.id);
  await next(task.task.id, ctx);
  return code;
}

async function next(id: string, ctx: Context): Promise<void> {
  const { readTask } = await import('../../store/tasks.ts');
  const { nextSteps } = await import('../terminal/next-steps.ts');
  const { isUnderWay } = await import('../../protocol/run-state.ts');
  const task = await readTask(ctx.stateDir, id);
  // A user who left while it runs knows what to do next.
  if (task !== null && !(task.live && isUnderWay(task.run.state))) ctx.stderr.write(nextSteps(task));
}
