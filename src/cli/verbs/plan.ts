// cli/verbs/plan.ts: `ags plan`: the plan of a sandbox, as text or as JSON.
import { AgsError, EXIT } from '../../protocol/errors.ts';
import { viewPlan, type PlanView } from '../../exec/plan-view.ts';
import { createPaint } from '../terminal/colour.ts';
import { lineWidth } from '../terminal/format.ts';
import { summarizePlan } from '../terminal/plan-summary.ts';
import { renderPlan } from '../terminal/plan-text.ts';
import { agentNames, AGENT_OPTION, inProject, RUN_OPTIONS, runFlags } from '../run-options.ts';
import type { Verb } from '../verb.ts';

const { name: _name, review: _review, ...OPTIONS } = RUN_OPTIONS;

const verb: Verb = {
  summary: 'show the plan of a sandbox without starting it',
  usage: 'plan [options] [--] [command] [arguments...]',
  takes: 'any',
  about:
    'Prints what is visible and reachable inside, what is limited, and which settings are not the default, on one screen. --verbose prints every mount in order, the environment, the limits and the exact command lines. Takes the options of "ags exec"; the default command is your shell. Variables that you pass on yourself show "(set)" instead of their value, except with --json.',
  examples: [
    'ags plan -- npm test',
    'ags plan --reveal .env -- ./run.sh',
    "ags plan --json -- make | jq -r '.spec.mounts[].to'",
    'ags plan --verbose | grep "^  rw"',
  ],
  passthrough: true,
  options: {
    ...OPTIONS,
    ...AGENT_OPTION,
    verbose: { type: 'boolean', short: 'v', about: 'print every mount, variable, limit and command line' },
    json: { type: 'boolean', about: 'print one JSON document with all values' },
  },
  async run(args, ctx) {
    const command = args.positionals;
    if (command[0] === '')
      throw new AgsError('usage.invalid', 'The command is empty.', { hint: 'For example: ags plan -- npm test' });
    const terminal = { any: ctx.stdin.isTTY || ctx.stdout.isTTY || ctx.stderr.isTTY, stdin: ctx.stdin.isTTY };
    const view = await viewPlan(inProject(args, ctx), {
      command,
      flags: runFlags(args),
      agents: agentNames(args),
      terminal,
    });
    const paint = createPaint(ctx.colour);
    const columns = Math.min(100, lineWidth(ctx.stdout, 80));
    ctx.stdout.write(
      args.values['json'] === true
        ? `${JSON.stringify(planDocument(view), null, 2)}\n`
        : args.values['verbose'] === true
          ? renderPlan(view, paint)
          : summarizePlan(view, paint, { columns, home: ctx.home }),
    );
    return EXIT.done;
  },
};
export default verb;

function planDocument(view: PlanView): unknown {
  const {
    label,
    project,
    workspace,
    command,
    spec,
    launch,
    beside,
    docker,
    compose,
    limits,
    hidden,
    trackedSecrets,
    notices,
    services,
    budgets,
  } = view;
  return {
    label,
    project: {
      root: project.root,
      head: project.repository?.headRef ?? null,
      commit: project.repository?.headCommit ?? null,
      git: project.repository !== null,
    },
    workspace,
    command,
    hidden,
    trackedSecrets,
    notices,
    services,
    budgets,
    docker,
    compose,
    limits,
    spec,
    argv: launch.argv,
    beside,
    bwrapArgs: launch.bwrapArgs,
    staged: launch.staged,
    files: launch.files,
  };
}
