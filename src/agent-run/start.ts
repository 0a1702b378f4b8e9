// agent-run/start.ts: creates a task for each goal and starts its runner.
// Invariant: a start that cannot succeed is refused before anything is created. A created task survives the command that created it.
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { PRICES_AS_OF, priceOf, type ModelPrices } from '../agents/prices.ts';
import { commandWords } from '../lib/command-words.ts';
import { visible } from '../lib/sanitize.ts';
import { AgsError } from '../protocol/errors.ts';
import type { Goal, RunFile } from '../protocol/task.ts';
import { identityOf, NOBODY, ownIdentity } from '../lib/process/liveness.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { usualParallel } from '../config/tasks.ts';
import { userGit } from '../git/host-git.ts';
import type { Repository } from '../git/repository.ts';
import type { TaskPaths } from '../store/layout.ts';
import { appendEvent } from '../store/events.ts';
import { createTask, readTask, slug, taskIds, writeRun, type StoredTask } from '../store/tasks.ts';
import { orderGoals, type OrderedGoal } from './goal-order.ts';
import { agentOf, planAgentRun } from './plan-agent.ts';
import { explainDiskErrors } from '../run/disk-errors.ts';
import { checkHooks } from './run-hooks.ts';
import { planRun } from '../run/plan-run.ts';
import type { HostContext } from '../run/host-context.ts';

/** Settings of one goal, which override those of the request. */
export interface GoalSettings {
  readonly agent?: string;
  readonly model?: string;
  readonly maxSeconds?: number;
  readonly maxCostMicros?: number;
  readonly maxTurns?: number;
  readonly maxTokens?: number;
}

export interface StartGoal extends OrderedGoal, GoalSettings {
  readonly text: string;
}

export interface StartRequest {
  readonly goals: readonly StartGoal[];
  /** As the user typed them: names or command lines. Several agents share the attempts. */
  readonly agents: readonly string[];
  readonly attempts: number;
  readonly interactive: boolean;
  readonly base: string | null;
  readonly model: string | null;
  readonly maxSeconds: number | null;
  readonly maxCostMicros: number | null;
  readonly maxTurns: number | null;
  readonly maxTokens: number | null;
  readonly parallel: number | null;
  readonly flags: ConfigFlags;
  /** Start from the result of this task instead of `base`. */
  readonly from?: StoredTask;
  /** Start from this commit of the repository instead of either. */
  readonly on?: Pick<Goal, 'base' | 'baseRef' | 'origin'>;
}

/** `notice`: what the logs of the tasks also say. */
export function startTasks(
  context: HostContext,
  request: StartRequest,
  notice: (text: string) => void = () => undefined,
): Promise<StoredTask[]> {
  return explainDiskErrors(context, () => start(context, request, notice));
}

async function start(
  context: HostContext,
  request: StartRequest,
  notice: (text: string) => void,
): Promise<StoredTask[]> {
  if (request.goals.some(({ text }) => text.trim() === ''))
    throw new AgsError('usage.invalid', 'The goal is empty.', {
      hint: 'Say what the agent should do: ags start "Make the date tests pass in any time zone"',
    });
  const plan = await planRun(context, request.flags, { live: false });
  const { repository } = plan.project;
  if (repository === null || repository.headCommit === null)
    throw new AgsError('project.unsuitable', `${plan.project.root} has no commit to start from.`, {
      hint: 'An agent starts from a commit: git init && git add -A && git commit -m "Start"',
    });
  const project = plan.project.root;
  for (const text of plan.notices) notice(text);
  checkHooks(context, project);
  if (plan.services.list.length > 0) {
    const { requireServices } = await import('../run/plan-services.ts');
    requireServices(plan.services, context.uid === 0 || plan.namespaces);
  }
  if (plan.config.compose !== null) (await import('../nested-docker/compose-client.ts')).findComposeClient();
  const base =
    request.on ??
    (request.from === undefined
      ? await findBase(context, repository, request.base)
      : resultAsBase(project, request.from));
  const { tasks: defaults } = plan.config;
  const goalOf = (one: Omit<StartGoal, 'name'>, agent: string): Goal => ({
    text: one.text,
    ...readAgent(agent),
    ...modelOf(one.model ?? request.model ?? plan.config.agents[readAgent(agent).agent]?.model ?? defaults.model),
    interactive: request.interactive,
    ...base,
    maxSeconds: one.maxSeconds ?? request.maxSeconds ?? defaults.seconds,
    maxCostMicros: one.maxCostMicros ?? request.maxCostMicros ?? defaults.costMicros,
    maxTurns: one.maxTurns ?? request.maxTurns ?? defaults.turns,
    maxTokens: one.maxTokens ?? request.maxTokens ?? defaults.tokens,
    parallel: request.parallel ?? defaults.parallel ?? usualParallel(availableParallelism()),
    flags: { ...request.flags },
  });
  const own = request.goals.flatMap(({ agent }) => agent ?? []);
  const agents = chooseAgents(request, own.length === request.goals.length ? (own[0] ?? null) : defaults.agent);
  const taken = new Set([...taskIds(context.stateDir), ...branchNames(repository)]);
  const ordered = await inOrder(context, project, request, { taken, attempts: agents.length });
  // Plan each agent once: an error now is better than a run that fails later.
  for (const agent of new Set([...agents, ...own])) {
    const { model } = await planAgentRun(context, project, goalOf({ text: '' }, agent));
    for (const one of request.goals) {
      if (one.agent !== undefined && one.agent !== agent) continue;
      const goal = goalOf(one, one.agent ?? agent);
      const wanted = goal.model ?? model;
      if ((goal.maxCostMicros !== null || defaults.budgets.length > 0) && wanted !== null)
        requirePrice(wanted, plan.config.prices);
    }
  }
  const made: StoredTask[] = [];
  const ids = new Map<string, string>();
  // A goal without a name takes none that another has.
  const given = ordered.flatMap(({ name }) => (name === null ? [] : [slug(name)]));
  for (const goal of ordered) {
    const { name, text, agent: own, after } = goal;
    const attempts = own === undefined ? agents : agents.map(() => own);
    let first: string | undefined;
    for (const [i, agent] of attempts.entries()) {
      const stem = name ?? slug(text.split('\n')[0] ?? '', 32);
      const wanted = agents.length > 1 ? `${slug(stem)}-${i + 1}` : slug(stem);
      const attemptOf = agents.length > 1 ? (id: string) => ({ attemptOf: (first ??= id) }) : () => ({});
      const others = name === null ? new Set([...taken, ...given]) : taken;
      const waits = after === undefined ? {} : { after: ids.get(after) ?? after };
      const stored = makeTask(context, project, goalOf(goal, agent), freeNames(wanted, others), attemptOf, waits);
      taken.add(stored.id);
      if (name !== null) ids.set(name, stored.id);
      spawnRunner(context, stored.paths, stored.id, stored.run);
      made.push((await readTask(context.stateDir, stored.id)) as StoredTask);
    }
  }
  return made;
}

function modelOf(model: string | null): Pick<Goal, 'model'> {
  return model === null || model === '' ? {} : { model };
}

/** Refuses names that are taken, and goals that could never start, before the first is created. */
async function inOrder(
  context: HostContext,
  project: string,
  { goals }: StartRequest,
  { taken, attempts }: { taken: ReadonlySet<string>; attempts: number },
): Promise<StartGoal[]> {
  const there = new Map<string, StoredTask>();
  for (const name of new Set(goals.flatMap(({ after }) => after ?? []))) {
    const stored = taskIds(context.stateDir).includes(name) ? await readTask(context.stateDir, name) : null;
    if (stored?.task.goal !== undefined && stored.task.project === project && stored.run.state !== 'discarded')
      there.set(name, stored);
  }
  const ordered = orderGoals(goals, (name) => there.has(name));
  for (const { name, after } of goals) {
    if (name !== null && attempts === 1 && taken.has(slug(name))) throw nameTaken(slug(name));
    if (after !== undefined && attempts > 1 && goals.some((goal) => goal.name === after))
      throw new AgsError('usage.invalid', `${after} has ${attempts} attempts, so no task can begin after it.`, {
        hint: 'Start those goals first, with their attempts; then name the better attempt in (after: <task>).',
      });
  }
  return ordered;
}

/** A name without a number, such as "opus", stands for a model that only its answers name. */
function requirePrice(model: string, prices: ModelPrices): void {
  if (!/\d/.test(model) || priceOf(model, prices) !== null) return;
  throw new AgsError(
    'usage.invalid',
    `No price of ${visible(model)} is known, so a cost limit cannot hold (ags has list prices of ${PRICES_AS_OF}).`,
    {
      hint: `Set its price in your own configuration, in dollars for a million tokens of input/output:\n  prices: {"${visible(model)}": 1.50/6}\nOr limit its tokens instead: --max-tokens 2m`,
    },
  );
}

/** The names of existing branches below ags/. */
export function branchNames({ refs }: Repository): string[] {
  return refs.flatMap(({ name }) => (name.startsWith(BRANCHES) ? [name.slice(BRANCHES.length)] : []));
}

const BRANCHES = 'refs/heads/ags/';

function nameTaken(name: string): AgsError {
  return new AgsError('usage.invalid', `A task or branch named ${name} already exists.`, {
    hint: `Choose another name, restart that task (ags restart ${name}), or remove it (ags rm ${name}).`,
  });
}

export function* freeNames(wanted: string, taken: ReadonlySet<string>): Generator<string, never> {
  if (!taken.has(wanted)) yield wanted;
  for (let i = 2; ; i++) if (!taken.has(`${wanted}-${i}`)) yield `${wanted}-${i}`;
}

function chooseAgents({ agents, attempts }: StartRequest, usual: string | null): string[] {
  const named = agents.length > 0 ? [...agents] : usual === null ? [] : [usual];
  if (named.length === 0)
    throw new AgsError('usage.invalid', 'No agent was chosen.', {
      hint: 'Choose one: --agent claude. Try ags without a key: --agent demo\nList agents: ags agents. Set a default: "tasks: { agent: claude }" in the configuration.',
    });
  const count = Math.max(attempts, named.length);
  return Array.from({ length: count }, (_, i) => named[i % named.length] ?? '');
}

/** Reads a name, or a command line in which quotes group words with blanks. */
function readAgent(text: string): Pick<Goal, 'agent' | 'command'> {
  if (/^[a-z][a-z0-9-]*$/.test(text)) {
    agentOf({ agent: text });
    return { agent: text };
  }
  const words = commandWords(text);
  if (words.length === 0) throw new AgsError('usage.invalid', "The agent's command is empty.");
  return { agent: 'command', command: words };
}

async function findBase(
  context: HostContext,
  repository: Repository,
  wanted: string | null,
): Promise<Pick<Goal, 'base' | 'baseRef'>> {
  if (wanted === null) return { base: repository.headCommit ?? '', baseRef: repository.headRef };
  const options = { cwd: repository.root, home: context.home, configHome: context.env['XDG_CONFIG_HOME'] };
  const commit = await userGit(['rev-parse', '-q', '--verify', '--end-of-options', `${wanted}^{commit}`], options);
  if (commit.exitCode !== 0)
    throw new AgsError('usage.invalid', `There is no commit "${wanted}" in this repository.`, {
      hint: 'Name a branch, a tag or a commit: git log --oneline',
    });
  const full = `refs/heads/${wanted}`;
  return {
    base: commit.stdout.toString('utf8').trim(),
    baseRef: repository.refs.some(({ name }) => name === full) ? full : null,
  };
}

function resultAsBase(project: string, { task, run }: StoredTask): Pick<Goal, 'base' | 'baseRef' | 'origin'> {
  if (task.project !== project) throw new AgsError('usage.invalid', `${task.name} is a task of another project.`);
  if (run.result == null)
    throw new AgsError('usage.invalid', `${task.name} has no result to start from.`, {
      hint: `See its state: ags show ${task.name}`,
    });
  const origin = task.goal?.origin ?? task.goal?.base;
  return { base: run.result.commit, baseRef: task.goal?.baseRef ?? null, ...(origin === undefined ? {} : { origin }) };
}

function makeTask(
  context: HostContext,
  project: string,
  goal: Goal,
  names: Generator<string, never>,
  attemptOf: (id: string) => { attemptOf?: string },
  waits: { after?: string },
): { id: string; paths: TaskPaths; run: RunFile } {
  const now = context.now();
  const { id, paths, run } = createTask(
    context.stateDir,
    () => names.next().value,
    (id) => ({
      task: {
        version: 1,
        id,
        name: id,
        kind: 'agent',
        goal,
        project,
        git: true,
        command: goal.command ?? [goal.agent],
        ...attemptOf(id),
        createdAt: now.toISOString(),
      },
      run: { ...firstRun(goal.base, now.getTime(), 1), ...waits },
    }),
  );
  appendEvent(paths.events, { task: id, at: now }, { type: 'run.queued', goal: goal.text, agent: goal.agent, run: 1 });
  return { id, paths, run };
}

export function firstRun(base: string, startedAtMs: number, number: number): RunFile {
  return {
    version: 1,
    state: 'queued',
    startedAtMs,
    exitCode: null,
    label: '',
    workspace: 'overlay',
    hidden: [],
    revealed: [],
    base,
    objectFormat: base.length === 64 ? 'sha256' : 'sha1',
    runner: ownIdentity(),
    user: { uid: 0, gid: 0 },
    settled: [],
    ignoredDiscarded: false,
    number,
  };
}

/**
 * Starts the runner in its own session, so that neither a closed window nor the end of this command stops it. The runner waits until
 * run.json names it, so that the run never looks interrupted.
 */
export function spawnRunner(context: HostContext, paths: TaskPaths, id: string, run: RunFile): void {
  const log = openSync(paths.runnerLog, 'a', 0o600);
  const [program = '', ...script] = context.self;
  try {
    const child = spawn(program, [...script, '__run', id], {
      cwd: '/',
      env: { ...context.env },
      detached: true,
      stdio: ['pipe', log, log],
    });
    child.unref();
    child.stdin?.on('error', () => undefined);
    child.on('error', () => undefined);
    if (child.pid === undefined)
      throw new AgsError('backend.failed', `The runner could not be started: ${program}`, {
        hint: `Check that the program exists and that more processes are allowed (ulimit -u), then: ags restart ${id}`,
      });
    try {
      writeRun(paths, { ...run, runner: identityOf(child.pid) });
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
    child.stdin?.end();
  } catch (error) {
    // Otherwise this process, which lives on, would count as its runner.
    writeRun(paths, { ...run, runner: NOBODY });
    throw error;
  } finally {
    closeSync(log);
  }
}
