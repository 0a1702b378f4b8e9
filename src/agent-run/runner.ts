// agent-run/runner.ts: the road of an agent's run, in a process of its own: queue, layers, sandbox, turns, branch.
// Invariant: whatever happens the run ends in a state that says so, and what the agent wrote is kept. Killed outright, it leaves
// a run whose state is "running" and whose runner is dead: everybody reads that as interrupted, and its work is fetched on demand.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { AgsError } from '../protocol/errors.ts';
import type { Goal } from '../protocol/task.ts';
import { ownIdentity } from '../lib/process/liveness.ts';
import { tryLock } from '../lib/process/lock.ts';
import { oneLine } from '../git/commit-text.ts';
import { perlInside } from '../sandbox/spec/interpreter.ts';
import { openEvents, type EventLog } from '../store/events.ts';
import { readTask, type StoredTask } from '../store/tasks.ts';
import { createAgentRun } from '../workspace/agent-workspace.ts';
import { authorOf, layersFor, setStage, type AgentStage } from './plan-agent.ts';
import { runTurn, type TurnEnd } from './turn.ts';
import { versionNotice } from '../agent-setup/version.ts';
import { bringOut } from '../results/bring-out.ts';
import { countRisky } from '../results/count-risky.ts';
import { openDesk, type Desk } from './control-server.ts';
import { takeMessage, type TakenMessage } from './inbox.ts';
import { innerDockerFor, type InnerDocker } from '../nested-docker/nested-docker.ts';
import type { PreparedLayers } from '../workspace/prepare-snapshot.ts';
import { hasServices } from '../run/planned-services.ts';
import { builderOf, imageOf, rootOfPlan } from '../run/plan-run.ts';
import type { ServiceDoors } from '../run/network/run-network.ts';
import { openRunHooks } from './run-hooks.ts';
import { createRunKeeper, type RunKeeper } from './run-record.ts';
import { createAttention, createBudget } from './watch-agent.ts';
import { sandboxKey } from '../run/sandbox-key.ts';
import { describeStrength } from '../run/strength-label.ts';
import { waitForTurn } from './queue.ts';
import type { World } from '../run/host-context.ts';

/** The whole life of a runner. The exit code is for whoever looks at processes; the run's own files say more. */
export async function runAgentTask(world: World, id: string): Promise<number> {
  // Whoever started us has written our name into the run's file by then, or is dead.
  await once(process.stdin.resume(), 'close');
  const stored = await readTask(world.stateDir, id);
  if (stored === null) throw new AgsError('task.not-found', `There is no task ${id}.`);
  using lock = tryLock(stored.paths.lock);
  if (lock === null) throw new AgsError('task.busy', `${stored.task.name} is being worked on by another process.`);
  using events = openEvents(stored.paths.events, id, () => world.now());
  const run = createRunKeeper(stored, events);
  run.set({ runner: ownIdentity() });
  using desk = openDesk(stored.paths);
  process
    .on('SIGTERM', () => desk.stop(false))
    .on('SIGINT', () => desk.stop(false))
    .on('SIGHUP', () => desk.stop(false));
  try {
    await travel({ world, stored, events, run, desk });
    return 0;
  } catch (error) {
    run.end('failed', { reason: sentence(error), exitCode: null });
    if (!(error instanceof AgsError)) throw error;
    return 1;
  }
}

interface Road {
  readonly world: World;
  readonly stored: StoredTask;
  readonly events: EventLog;
  readonly run: RunKeeper;
  readonly desk: Desk;
}

async function travel(road: Road): Promise<void> {
  const { world, stored, events, run, desk } = road;
  const goal = stored.task.goal;
  if (goal === undefined) throw new Error('this task has no goal');
  const admitted = await waitForTurn({
    world,
    id: stored.task.id,
    parallel: goal.parallel,
    cores: availableParallelism(),
    admit: () => run.move('preparing'),
    onWait: (why) => void events.append({ type: 'run.waiting', why }),
    signal: desk.stopped,
  });
  if (!admitted) return run.end('stopped', { reason: 'Stopped before it began.', exitCode: null });
  const stage = await setStage(world, stored.task.project, goal, run.now.image);
  const other = versionNotice(world, stage.agent, stage.program);
  for (const text of [...stage.plan.notices, ...(other === null ? [] : [other])])
    events.append({ type: 'run.noticed', text });
  // A run that goes on stands on what it stood on before.
  const earlier = run.now.layers === undefined ? null : { layers: run.now.layers, hidden: run.now.hidden };
  const prepared =
    earlier === null
      ? await layersFor(world, stage, stored, {
          onStep: (step) => void events.append({ type: 'run.prepared', step: step.kind, text: step.text }),
          onOutput: (text) => void events.append({ type: 'run.printed', text: text.slice(0, 4096) }),
          signal: desk.stopped,
        })
      : { ...earlier, commit: goal.base, index: '', exclude: [] };
  if (desk.stopped.aborted) return run.end('stopped', { reason: 'Stopped before it began.', exitCode: null });
  // Before the run says that it has layers: killed in between it never began, and nobody goes on with half a workspace.
  if (earlier === null) await createAgentRun(stage.plan, stored.paths, stored.task.name, prepared);
  run.set({
    layers: [...prepared.layers],
    hidden: [...prepared.hidden],
    label: describeStrength(stage.plan),
    sandboxKey: sandboxKey(world, stage.plan),
    workspace: stage.plan.workspace,
    ...builderOf(stage.plan),
    ...imageOf(stage.plan),
    user: { uid: stage.plan.user.uid, gid: stage.plan.user.gid },
  });
  const staged = await withComposed(road, stage, goal);
  const outcome = await besideServices(road, staged, goal, (beside) => talk(road, staged, prepared, beside));
  run.end(outcome.state, outcome);
}

/** What another agent did is no base for services and compose files either. */
const filesFor = (goal: Goal): { commit: string } => ({ commit: goal.origin ?? goal.base });

async function withComposed({ world, stored, desk }: Road, stage: AgentStage, goal: Goal): Promise<AgentStage> {
  if (stage.plan.config.compose === null) return stage;
  const { withCompose } = await import('../nested-docker/compose-plan.ts');
  const about = { task: stored.task.id, paths: stored.paths, signal: desk.stopped };
  return { ...stage, plan: await withCompose(world, stage.plan, filesFor(goal), about) };
}

interface Beside {
  readonly services: ServiceDoors | null;
  readonly docker: InnerDocker | null;
}

/** From before the first turn until after the last; what services hold is kept for a run that goes on. */
async function besideServices(
  { world, stored, events, run }: Road,
  { plan }: AgentStage,
  goal: Goal,
  use: (beside: Beside) => Promise<Outcome>,
): Promise<Outcome> {
  const notice = (text: string): void => void events.append({ type: 'run.noticed', text });
  await using docker = innerDockerFor({
    world,
    id: stored.task.id,
    config: plan.config,
    secrets: plan.network.secrets,
    notice,
  });
  if (!hasServices(plan.services)) return await use({ services: null, docker });
  const { openRunServices } = await import('../services/run-services.ts');
  await using services = openRunServices({
    world,
    plan,
    task: stored.task.id,
    paths: stored.paths,
    source: filesFor(goal),
    docker,
    keep: true,
    onEvent(event) {
      events.append({ ...event });
      if (event.type === 'service.failed')
        createAttention(run).service(`${event.why} Its log: ags services logs ${stored.task.name} ${event.service}`);
    },
  });
  return await use({ services, docker });
}

/** Turn after turn, for as long as there is something to say. */
async function talk(road: Road, stage: AgentStage, prepared: PreparedLayers, beside: Beside): Promise<Outcome> {
  const { stored, events, run, desk } = road;
  const goal = stored.task.goal?.text ?? '';
  // Only the first turn after an import stands on nothing of its own.
  const takesUp = stored.run.begins !== undefined && stored.run.layers === undefined;
  // Killed before it could say which conversation this is, an agent has forgotten its goal.
  const forgot = run.now.turns !== undefined && run.now.session === undefined;
  const first = run.now.turns === undefined ? { text: goal, drop: () => undefined } : takeMessage(stored.paths);
  const words = takesUp ? takenUp : forgot ? told : (_goal: string, message: string) => message;
  const begin = first === null ? null : { ...first, text: words(goal, first.text) };
  for (let message: TakenMessage | null = begin; message !== null; message = takeMessage(stored.paths)) {
    const end = await takeTurn(road, stage, prepared, beside, message);
    await fetchWork(road, stage);
    const outcome = judge(end, desk, stage);
    events.append({ type: 'turn.ended', turn: run.now.turns ?? 1, exitCode: end.exitCode, state: outcome.state });
    if (outcome.state !== 'ready' || desk.stopped.aborted) return outcome;
  }
  return { state: run.now.result == null ? 'no-changes' : 'ready', exitCode: 0 };
}

/** The conversation stayed on the other machine: an agent that takes the work up is told what it was for. */
function takenUp(goal: string, message: string): string {
  const was = oneLine(goal, 4000).replaceAll(' // ', ' / ');
  return `(You take up work that was begun elsewhere. It is in the commits of this branch. Its goal was "${was}".)\n\n${message}`;
}

const told = (goal: string, message: string): string => `${goal}\n\n${message}`;

async function takeTurn(
  road: Road,
  stage: AgentStage,
  prepared: PreparedLayers,
  beside: Beside,
  { text: prompt, drop }: TakenMessage,
): Promise<TurnEnd> {
  const { world, stored, events, run, desk } = road;
  const turn = (run.now.turns ?? 0) + 1;
  const budget = createBudget(run, desk, stored.task.goal ?? {}, stage.agent);
  const attention = createAttention(run);
  const hooks = await openRunHooks({
    world,
    project: stored.task.project,
    config: stage.plan.config,
    task: stored.task.id,
    run: run.now.number ?? 1,
    agent: stage.agent,
    goal: stored.task.goal?.text ?? '',
    perl: perlInside(rootOfPlan(stage.plan), '/usr/bin/perl'),
    emit: (event) => void events.append({ ...event }),
    runInside: (argv, input, signal) => desk.runInside(argv, input, signal),
  });
  try {
    const end = await runTurn({
      world,
      stored,
      stage,
      prepared,
      hooks,
      ...beside,
      events,
      prompt,
      session: run.now.session ?? null,
      newSession: randomUUID(),
      onUp(live) {
        if (run.now.state === 'preparing') run.move('running');
        events.append({
          type: 'run.started',
          turn,
          agent: stage.agent.name,
          title: stage.agent.title,
          version: stage.program.version,
          prompt: turn === 1 ? '' : prompt,
          sandbox: run.now.label,
        });
        run.set({ turns: turn, fetched: false });
        drop();
        desk.up(live);
      },
      onEvent(event) {
        if (event.type === 'agent.started' && event.session !== null) run.set({ session: event.session });
        budget.count(event);
        attention.question(event);
      },
      onNetworkAsk: (host) => attention.network(host),
      notice: (text) => void events.append({ type: 'run.noticed', text }),
    });
    return end;
  } finally {
    desk.down();
    await hooks.close();
  }
}

/** Onto the branch. What cannot be brought out stays in the task, and the run says why. */
async function fetchWork({ world, stored, events, run }: Road, { agent }: AgentStage): Promise<void> {
  const result = await bringOut(world, { ...stored, run: run.now }, authorOf(agent));
  const risky = result === null ? 0 : await countRisky(world, { ...stored, run: run.now }, result.files);
  run.set({ result: result === null ? null : { ...result, risky }, fetched: true });
  if (result !== null) events.append({ type: 'changes.captured', branch: `ags/${stored.task.name}`, ...result });
}

interface Outcome {
  readonly state: 'ready' | 'no-changes' | 'failed' | 'stopped';
  readonly reason?: string;
  readonly exitCode: number | null;
}

function judge(end: TurnEnd, desk: Desk, { agent }: AgentStage): Outcome {
  const { exitCode, finished } = end;
  if (desk.reason !== null)
    return { state: desk.reason.failed ? 'failed' : 'stopped', reason: desk.reason.text, exitCode };
  if (end.ended !== null) return { state: 'failed', reason: end.ended, exitCode };
  if (finished?.ok === false) {
    const cure = finished.cause === 'sign-in' ? ` Sign in again: ags auth ${agent.name}` : '';
    return { state: 'failed', reason: `${agent.title}: ${finished.reason ?? 'it failed'}.${cure}`, exitCode };
  }
  if (exitCode !== 0) return { state: 'failed', reason: `${agent.title} ended with ${exitCode}.`, exitCode };
  return { state: 'ready', exitCode };
}

function sentence(error: unknown): string {
  if (error instanceof AgsError) return error.hint === undefined ? error.message : `${error.message} ${error.hint}`;
  return `This is a bug in ags: ${error instanceof Error ? error.message : String(error)}`;
}
