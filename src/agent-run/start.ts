// agent-run/start.ts: a goal becomes a task, and gets a runner of its own.
// Invariant: what can be known to fail is refused before anything is made; once the task is there, it survives whoever made it.
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { AgsError } from '../protocol/errors.ts';
import type { Goal, RunFile } from '../protocol/task.ts';
import { identityOf, NOBODY, ownIdentity } from '../lib/process/liveness.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { usualParallel } from '../config/tasks.ts';
import { userGit } from '../git/host-git.ts';
import type { Repository } from '../git/inspect.ts';
import type { TaskPaths } from '../store/layout.ts';
import { appendEvent } from '../store/events.ts';
import { createTask, readTask, slug, taskIds, writeRun, type StoredTask } from '../store/tasks.ts';
import { agentOf, setStage } from './plan-agent.ts';
import { tellDiskTrouble } from '../run/disk-errors.ts';
import { checkHooks } from './run-hooks.ts';
import { planRun } from '../run/plan-run.ts';
import type { World } from '../run/host-context.ts';

export interface StartRequest {
  /** `agent`: another one than the others have. */
  readonly goals: readonly { readonly name: string | null; readonly text: string; readonly agent?: string }[];
  /** As the user typed them: names, or command lines. Several with several attempts. */
  readonly agents: readonly string[];
  readonly attempts: number;
  readonly interactive: boolean;
  readonly base: string | null;
  readonly model: string | null;
  readonly maxSeconds: number | null;
  readonly maxCostMicros: number | null;
  readonly maxTurns: number | null;
  readonly parallel: number | null;
  readonly flags: ConfigFlags;
  /** Begin with what this task did, instead of `base`. */
  readonly from?: StoredTask;
  /** Begin with this commit of the repository, in place of either. */
  readonly on?: Pick<Goal, 'base' | 'baseRef' | 'origin'>;
}

export function startTasks(world: World, request: StartRequest): Promise<StoredTask[]> {
  return tellDiskTrouble(world, () => start(world, request));
}

async function start(world: World, request: StartRequest): Promise<StoredTask[]> {
  const plan = await planRun(world, request.flags, { live: false });
  const { repository } = plan.project;
  if (repository === null || repository.headCommit === null)
    throw new AgsError('project.unsuitable', `${plan.project.root} has no commit to start from.`, {
      hint: 'An agent works on a copy of a commit, on a branch of its own: git init && git add -A && git commit -m "Start"',
    });
  const project = plan.project.root;
  checkHooks(world, project);
  if (plan.services.list.length > 0) {
    const { requireServices } = await import('../run/plan-services.ts');
    requireServices(plan.services, world.uid === 0 || plan.namespaces);
  }
  if (plan.config.compose !== null) (await import('../nested-docker/compose-client.ts')).findComposeClient();
  const base =
    request.on ??
    (request.from === undefined
      ? await findBase(world, repository, request.base)
      : resultAsBase(project, request.from));
  const { tasks: defaults } = plan.config;
  const goalOf = (text: string, agent: string): Goal => ({
    text,
    ...readAgent(agent),
    ...((request.model ?? defaults.model) ? { model: request.model ?? defaults.model ?? '' } : {}),
    interactive: request.interactive,
    ...base,
    maxSeconds: request.maxSeconds ?? defaults.seconds,
    maxCostMicros: request.maxCostMicros ?? defaults.costMicros,
    maxTurns: request.maxTurns ?? defaults.turns,
    parallel: request.parallel ?? defaults.parallel ?? usualParallel(availableParallelism()),
    flags: { ...request.flags },
  });
  const own = request.goals.flatMap(({ agent }) => agent ?? []);
  const agents = chooseAgents(request, own.length === request.goals.length ? (own[0] ?? null) : defaults.agent);
  // Once for each: it says what is missing, which is better told now than by a run that fails.
  for (const agent of new Set([...agents, ...own])) await setStage(world, project, goalOf('', agent));
  const taken = new Set([...taskIds(world.stateDir), ...branchNames(repository)]);
  const made: StoredTask[] = [];
  for (const { name, text, agent: own } of request.goals) {
    const side = own === undefined ? agents : agents.map(() => own);
    let first: string | undefined;
    for (const [i, agent] of side.entries()) {
      const stem = name ?? slug(text.split('\n')[0] ?? '', 32);
      const wanted = agents.length > 1 ? `${slug(stem)}-${i + 1}` : slug(stem);
      if (name !== null && agents.length === 1 && taken.has(wanted)) throw nameTaken(wanted);
      const attemptOf = agents.length > 1 ? (id: string) => ({ attemptOf: (first ??= id) }) : () => ({});
      const stored = makeTask(world, project, goalOf(text, agent), freeNames(wanted, taken), attemptOf);
      taken.add(stored.id);
      spawnRunner(world, stored.paths, stored.id, stored.run);
      made.push((await readTask(world.stateDir, stored.id)) as StoredTask);
    }
  }
  return made;
}

/** The names after ags/ of the branches that are there. */
export function branchNames({ refs }: Repository): string[] {
  return refs.flatMap(({ name }) => (name.startsWith(BRANCHES) ? [name.slice(BRANCHES.length)] : []));
}

const BRANCHES = 'refs/heads/ags/';

function nameTaken(name: string): AgsError {
  return new AgsError('usage.invalid', `There is a task or a branch called ${name} already.`, {
    hint: `Choose another name, begin that one anew (ags restart ${name}), or throw it away (ags rm ${name}).`,
  });
}

export function* freeNames(wanted: string, taken: ReadonlySet<string>): Generator<string, never> {
  if (!taken.has(wanted)) yield wanted;
  for (let i = 2; ; i++) if (!taken.has(`${wanted}-${i}`)) yield `${wanted}-${i}`;
}

function chooseAgents({ agents, attempts }: StartRequest, usual: string | null): string[] {
  const named = agents.length > 0 ? [...agents] : usual === null ? [] : [usual];
  if (named.length === 0)
    throw new AgsError('usage.invalid', 'Which agent should do it?', {
      hint: 'Name one: --agent claude. To see the whole road without a key: --agent demo\nWhat there is: ags agents. For good: "tasks: { agent: claude }" in the configuration.',
    });
  const count = Math.max(attempts, named.length);
  return Array.from({ length: count }, (_, i) => named[i % named.length] ?? '');
}

/** A name, or a command line: words, with quotes around those that have blanks. */
function readAgent(text: string): Pick<Goal, 'agent' | 'command'> {
  if (/^[a-z][a-z0-9-]*$/.test(text)) {
    agentOf({ agent: text });
    return { agent: text };
  }
  const words = [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
  if (words.length === 0) throw new AgsError('usage.invalid', 'The command of the agent is empty.');
  return { agent: 'command', command: words };
}

async function findBase(
  world: World,
  repository: Repository,
  wanted: string | null,
): Promise<Pick<Goal, 'base' | 'baseRef'>> {
  if (wanted === null) return { base: repository.headCommit ?? '', baseRef: repository.headRef };
  const options = { cwd: repository.root, home: world.home, configHome: world.env['XDG_CONFIG_HOME'] };
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
    throw new AgsError('usage.invalid', `${task.name} has no result to begin with.`, {
      hint: `How it stands: ags show ${task.name}`,
    });
  const origin = task.goal?.origin ?? task.goal?.base;
  return { base: run.result.commit, baseRef: task.goal?.baseRef ?? null, ...(origin === undefined ? {} : { origin }) };
}

function makeTask(
  world: World,
  project: string,
  goal: Goal,
  names: Generator<string, never>,
  attemptOf: (id: string) => { attemptOf?: string },
): { id: string; paths: TaskPaths; run: RunFile } {
  const now = world.now();
  const { id, paths, run } = createTask(
    world.stateDir,
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
      run: firstRun(goal.base, now.getTime(), 1),
    }),
  );
  appendEvent(paths.events, { task: id, at: now, type: 'run.queued', goal: goal.text, agent: goal.agent, run: 1 });
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
 * In a session of its own: neither a closed window nor the end of this command reaches it. It waits until the run's file names it,
 * so that there is no moment in which the run looks as if nobody had it.
 */
export function spawnRunner(world: World, paths: TaskPaths, id: string, run: RunFile): void {
  const log = openSync(paths.runnerLog, 'a', 0o600);
  const [program = '', ...script] = world.self;
  try {
    const child = spawn(program, [...script, '__run', id], {
      cwd: '/',
      env: { ...world.env },
      detached: true,
      stdio: ['pipe', log, log],
    });
    child.unref();
    child.stdin?.on('error', () => undefined);
    child.on('error', () => undefined);
    if (child.pid === undefined)
      throw new AgsError('backend.failed', `The runner could not be started: ${program}`, {
        hint: `Is it there, and may there be more processes? Then: ags restart ${id}`,
      });
    try {
      writeRun(paths, { ...run, runner: identityOf(child.pid) });
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
    child.stdin?.end();
  } catch (error) {
    // This process lives on, and would count as its runner.
    writeRun(paths, { ...run, runner: NOBODY });
    throw error;
  } finally {
    closeSync(log);
  }
}
