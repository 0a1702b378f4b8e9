// agent-run/runner.ts: runs an agent's task from start to end, in its own process: queue, layers, sandbox, turns, branch.
// Invariant: whatever happens, the run ends in a state that tells so, and the agent's work is kept. A killed runner leaves the state
// "running" with a dead runner: every reader shows that as interrupted, and recover.ts brings the work out on demand.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { AgsError, flat, inOneLine } from '../protocol/errors.ts';
import type { Goal } from '../protocol/task.ts';
import { removeTree } from '../lib/files.ts';
import { ownIdentity } from '../lib/process/liveness.ts';
import { tryLock } from '../lib/process/lock.ts';
import { openBudget } from './model/budget.ts';
import { createModelFailures } from './model/failures.ts';
import { createModelWaits } from './model/waits.ts';
import { createRunAccount } from './model/account.ts';
import { perlInside } from '../sandbox/spec/interpreter.ts';
import { openEvents } from '../store/events.ts';
import { readTask } from '../store/tasks.ts';
import { createAgentRun } from '../workspace/agent-workspace.ts';
import { authorOf, layersFor, planAgentRun, type PlannedAgent } from './plan-agent.ts';
import { createAllowance } from './allowance.ts';
import { runTurn, type TurnEnd } from './turn.ts';
import type { TurnSandboxInput } from './turn-sandbox.ts';
import { versionNotice } from '../agent-setup/version.ts';
import { bringOut } from '../results/bring-out.ts';
import { countRisky } from '../results/change-set.ts';
import { openControlServer, type ControlServer } from './control-server.ts';
import { takeMessage } from './inbox.ts';
import { nestedDockerFor, type NestedDocker } from '../nested-docker/nested-docker.ts';
import type { PreparedLayers } from '../workspace/prepare-snapshot.ts';
import { hasServices } from '../run/planned-services.ts';
import { keepHome } from '../run/home/keep-home.ts';
import { builderOf, imageOf, rootOfPlan } from '../run/run-plan.ts';
import type { ServiceListeners } from '../run/network/network-input.ts';
import { goesOnLater, judge, refused, stoppedOutcome, type Outcome } from './outcome.ts';
import { goalPrompt, goOn, importedPrompt, type Message } from './prompts.ts';
import { askAtEnd } from './ask-at-end.ts';
import { openRunHooks, type RunHooks } from './run-hooks.ts';
import { createRunRecord } from './run-record.ts';
import { createAttention, type Attention } from './watch-agent.ts';
import { sandboxKey } from '../run/sandbox-key.ts';
import { describeStrength } from '../run/strength-label.ts';
import { afterOther } from './after.ts';
import { admitted, admittedAgain, budgetAgain, outlastModel, type WaitingRun } from './queue.ts';
import type { HostContext } from '../run/host-context.ts';

/** The main function of a runner's process. Returns its exit code; the files of the run tell more. */
export async function runAgentTask(context: HostContext, id: string): Promise<number> {
  // The starting process closes our stdin after it has written our identity into run.json, or when it dies.
  await once(process.stdin.resume(), 'close');
  const stored = await readTask(context.stateDir, id);
  if (stored === null) throw new AgsError('task.not-found', `There is no task ${id}.`);
  using lock = tryLock(stored.paths.lock);
  if (lock === null) throw new AgsError('task.busy', `${stored.task.name} is in use by another process.`);
  using events = openEvents(stored.paths.events, id, () => context.now());
  const run = createRunRecord(stored, events);
  run.set({ runner: ownIdentity() });
  using control = openControlServer(stored.paths);
  using budget = openBudget(context, stored.task.project, id);
  process
    .on('SIGTERM', () => control.stop(false))
    .on('SIGINT', () => control.stop(false))
    .on('SIGHUP', () => control.stop(false));
  try {
    await runTask({ context, stored, events, run, control, budget, attention: createAttention(run, stored.task.name) });
    return 0;
  } catch (error) {
    run.end('failed', { reason: sentence(error), exitCode: null });
    if (!(error instanceof AgsError)) throw error;
    return 1;
  }
}

interface Runner extends WaitingRun {
  readonly control: ControlServer;
  readonly attention: Attention;
}

async function runTask(waiting: Runner): Promise<void> {
  const stored = await afterOther(waiting);
  if (stored === null) return waiting.run.end('stopped', { reason: 'Stopped before it started.', exitCode: null });
  const runner = { ...waiting, stored };
  const { context, events, run, control } = runner;
  const goal = stored.task.goal;
  if (goal === undefined) throw new Error('this task has no goal');
  if (!(await admitted(runner, goal)))
    return run.end('stopped', { reason: 'Stopped before it started.', exitCode: null });
  const agentPlan = await planAgentRun(context, stored.task.project, goal, run.now.image);
  using home = await keepHome(context, agentPlan.plan, run.now);
  home.usedBy(stored.task.id);
  const { plan } = agentPlan;
  const planned = { ...agentPlan, plan: { ...plan, ...home.plan, notices: [...plan.notices, ...home.notices] } };
  const version = versionNotice(context, planned.agent, planned.program);
  for (const text of [...planned.plan.notices, ...(version === null ? [] : [version])])
    events.append({ type: 'run.noticed', text: flat(text) });
  // A continued run keeps its layers.
  const earlier = run.now.layers === undefined ? null : { layers: run.now.layers, hidden: run.now.hidden };
  const prepared =
    earlier === null
      ? await layersFor(context, planned, stored, {
          onStep: (step) => void events.append({ type: 'run.prepared', step: step.kind, text: step.text }),
          onOutput: (text) => void events.append({ type: 'run.printed', text: text.slice(0, 4096) }),
          signal: control.stopped,
        })
      : { ...earlier, commit: goal.base, index: '', exclude: [] };
  if (control.stopped.aborted) return run.end('stopped', { reason: 'Stopped before it started.', exitCode: null });
  // Create the workspace before run.json names its layers: a runner killed in between leaves a run without layers, so the next runner
  // makes the workspace anew.
  if (earlier === null) {
    removeTree(stored.paths.runDir);
    await createAgentRun(planned.plan, stored.paths, stored.task.name, prepared);
  }
  run.set({
    layers: [...prepared.layers],
    hidden: [...prepared.hidden],
    label: describeStrength(planned.plan),
    ...(planned.plan.keptHome === undefined ? {} : { home: planned.plan.keptHome }),
    sandboxKey: sandboxKey(context, planned.plan),
    workspace: planned.plan.workspace,
    ...builderOf(planned.plan),
    ...imageOf(planned.plan),
    user: { uid: planned.plan.user.uid, gid: planned.plan.user.gid },
  });
  const complete = await withComposed(runner, planned, goal);
  const outcome = await withServices(runner, complete, goal, (beside) => runTurns(runner, complete, prepared, beside));
  run.end(outcome.state, outcome);
}

/** Seed and compose files come from the user's commit, not from another agent's result. */
const filesFor = (goal: Goal): { commit: string } => ({ commit: goal.origin ?? goal.base });

async function withComposed(
  { context, stored, control }: Runner,
  planned: PlannedAgent,
  goal: Goal,
): Promise<PlannedAgent> {
  if (planned.plan.config.compose === null) return planned;
  const { withCompose } = await import('../nested-docker/compose-plan.ts');
  const about = { task: stored.task.id, paths: stored.paths, signal: control.stopped };
  return { ...planned, plan: await withCompose(context, planned.plan, filesFor(goal), about) };
}

interface Beside {
  readonly services: ServiceListeners | null;
  readonly docker: NestedDocker | null;
}

/** Services run from before the first turn until after the last. Their data is kept for a continued run. */
async function withServices(
  { context, stored, events, attention }: Runner,
  { plan }: PlannedAgent,
  goal: Goal,
  use: (beside: Beside) => Promise<Outcome>,
): Promise<Outcome> {
  const notice = (text: string): void => void events.append({ type: 'run.noticed', text: flat(text) });
  await using docker = nestedDockerFor({
    context,
    id: stored.task.id,
    config: plan.config,
    secrets: plan.network.secrets,
    notice,
  });
  if (!hasServices(plan.services)) return await use({ services: null, docker });
  const { openRunServices } = await import('../services/run-services.ts');
  await using services = openRunServices({
    context,
    plan,
    task: stored.task.id,
    paths: stored.paths,
    source: filesFor(goal),
    docker,
    keep: true,
    onEvent(event) {
      events.append({ ...event });
      if (event.type === 'service.failed')
        attention.service(`${event.why} Its log: ags services logs ${stored.task.name} ${event.service}`);
    },
  });
  return await use({ services, docker });
}

/**
 * Runs turns until no message is left and no post-stop hook sends the agent back. A run without a person at its terminal becomes
 * ready in one place only: after its hooks said yes.
 */
async function runTurns(
  runner: Runner,
  planned: PlannedAgent,
  prepared: PreparedLayers,
  beside: Beside,
): Promise<Outcome> {
  const { stored, run, control } = runner;
  const goal = stored.task.goal?.text ?? '';
  const nowMs = (): number => runner.context.now().getTime();
  const asksAtEnd = stored.task.goal?.interactive !== true;
  // True for the first turn after an import.
  const imported = stored.run.begins !== undefined && stored.run.layers === undefined;
  // An agent that was killed before it reported its session does not know its goal.
  const forgot = run.now.turns !== undefined && run.now.session === undefined;
  const first = run.now.turns === undefined ? { text: goal, drop: () => undefined } : takeMessage(stored.paths);
  const prompt = imported ? importedPrompt : forgot ? goalPrompt : (_goal: string, message: string) => message;
  let message: Message | null = first === null ? null : { ...first, text: prompt(goal, first.text) };
  await using hooks = await openHooks(runner, planned);
  const account = createRunAccount({
    run,
    stop: (text) => control.stop(true, { text, failed: true }),
    budget: runner.budget,
    wait({ what, until, raise }) {
      if (asksAtEnd) {
        overBudget = true;
        return control.endTurn();
      }
      // The person at the terminal goes on, when that is possible again.
      runner.attention.model(`No request is sent until ${until}: ${what}. Raise ${raise}.`);
      refusing ??= budgetAgain(runner.budget, over.signal).then(
        () => {
          refusing = null;
          runner.attention.model(null);
        },
        () => undefined,
      );
    },
    goal: stored.task.goal ?? {},
    agent: planned.agent,
    metered: planned.signIn !== null,
    prices: planned.plan.config.prices,
    emit: (event) => void runner.events.append(event),
    failures: createModelFailures({
      emit: (event) => void runner.events.append(event),
      need: (why) => runner.attention.model(why),
      nowMs,
    }),
  });
  const waits = createModelWaits(nowMs);
  /** This turn was ended because a budget is used up. */
  let overBudget = false;
  let refusing: Promise<void> | null = null;
  const over = new AbortController();
  using _over = { [Symbol.dispose]: () => over.abort() };
  const input: TurnSandboxInput = { ...sandboxInput(runner), planned, prepared, hooks, account, ...beside };
  using allowance = createAllowance(control, planned.plan.config.limits.wallSeconds);
  for (;;) {
    let outcome: Outcome | null = null;
    if (message !== null) {
      overBudget = false;
      await runner.budget.usedUpNow();
      const end = await takeTurn(runner, input, message);
      await fetchWork(runner, planned);
      const unheld = account.unheld();
      if (unheld !== null) runner.events.append({ type: 'run.noticed', text: unheld });
      outcome = judge(end, control, planned);
      runner.events.append({
        type: 'turn.ended',
        turn: run.now.turns ?? 1,
        exitCode: end.exitCode,
        state: outcome.state,
      });
      const failure = account.failures.now;
      account.failures.over();
      if (failure === null) waits.renew();
      if (outcome.state !== 'ready' || control.stopped.aborted) {
        const untilMs = overBudget ? 0 : goesOnLater(outcome, end, account.metered, failure, waits);
        if (untilMs === null || stored.task.goal === undefined || control.stopped.aborted) return outcome;
        const { goal: again } = stored.task;
        const goesOn = await allowance.outside(() =>
          overBudget
            ? admittedAgain(runner, again)
            : outlastModel(runner, again, { untilMs, status: failure?.status ?? null }),
        );
        if (!goesOn) return stoppedOutcome(control, null) ?? outcome;
        const told = takeMessage(stored.paths);
        message = goOn(goal, told, planned.agent.resumes && run.now.session !== undefined);
        continue;
      }
    }
    const refusal = asksAtEnd ? await askAtEnd(input, control) : null;
    if (asksAtEnd && hooks.endsInside) await fetchWork(runner, planned);
    const stopped = stoppedOutcome(control, outcome?.exitCode ?? null);
    if (stopped !== null) return stopped;
    const told = takeMessage(stored.paths);
    if (told !== null) {
      allowance.renew();
      account.renewTurns();
    }
    if (refusal === null) {
      if (told === null) return { state: run.now.result == null ? 'no-changes' : 'ready', exitCode: 0 };
      message = told;
      continue;
    }
    if (told === null && !allowance.sendBack()) return refused(refusal, outcome?.exitCode ?? null);
    const knows = planned.agent.resumes && run.now.session !== undefined;
    const text = `${told === null ? '' : `${told.text}\n\n`}You are not done yet. ${refusal.reason}`;
    message = {
      text: knows ? text : goalPrompt(goal, text),
      ofUser: told?.text ?? '',
      drop: () => told?.drop(),
    };
  }
}

async function openHooks(runner: Runner, planned: PlannedAgent): Promise<RunHooks & AsyncDisposable> {
  const { context, stored, events, run, control } = runner;
  const hooks = await openRunHooks({
    context,
    project: stored.task.project,
    config: planned.plan.config,
    task: stored.task.id,
    run: run.now.number ?? 1,
    agent: planned.agent,
    goal: stored.task.goal?.text ?? '',
    interactive: stored.task.goal?.interactive === true,
    perl: perlInside(rootOfPlan(planned.plan), '/usr/bin/perl'),
    emit: (event) => void events.append({ ...event }),
    runInside: (argv, input, signal) => control.runInside(argv, input, signal),
  });
  return { ...hooks, [Symbol.asyncDispose]: () => hooks.close() };
}

function sandboxInput({
  context,
  stored,
  events,
  attention,
}: Runner): Pick<TurnSandboxInput, 'context' | 'stored' | 'events' | 'onNetworkAsks' | 'notice'> {
  return {
    context,
    stored,
    events,
    onNetworkAsks: (hosts) => attention.network(hosts),
    notice: (text) => void events.append({ type: 'run.noticed', text: flat(text) }),
  };
}

async function takeTurn(
  { events, run, control, attention }: Runner,
  input: TurnSandboxInput,
  { text: prompt, ofUser = prompt, drop }: Message,
): Promise<TurnEnd> {
  const { planned, account } = input;
  const turn = (run.now.turns ?? 0) + 1;
  account.begin();
  return await runTurn({
    ...input,
    prompt,
    session: run.now.session ?? null,
    newSession: randomUUID(),
    onUp(live) {
      if (run.now.state === 'preparing') run.move('running');
      events.append({
        type: 'run.started',
        turn,
        agent: planned.agent.name,
        title: planned.agent.title,
        version: planned.program.version,
        prompt: turn === 1 ? '' : ofUser,
        sandbox: run.now.label,
      });
      run.set({ turns: turn, fetched: false });
      drop();
      control.up(live);
    },
    onEvent(event) {
      if (event.type === 'agent.started' && event.session !== null) run.set({ session: event.session });
      account.agent(event);
      attention.agent(event);
    },
    onPrompt: (waiting) => attention.prompt(waiting),
  }).finally(() => control.down());
}

/** Brings the work onto the branch. If that fails, the work stays in the task, and the run's reason tells why. */
async function fetchWork({ context, stored, events, run }: Runner, { agent }: PlannedAgent): Promise<void> {
  const result = await bringOut(context, { ...stored, run: run.now }, authorOf(agent));
  const risky = result === null ? 0 : await countRisky(context, { ...stored, run: run.now }, result.files);
  run.set({ result: result === null ? null : { ...result, risky }, fetched: true });
  if (result !== null) events.append({ type: 'changes.captured', branch: `ags/${stored.task.name}`, ...result });
}

function sentence(error: unknown): string {
  if (error instanceof AgsError) return inOneLine(error);
  return `This is a bug in ags: ${error instanceof Error ? error.message : String(error)}`;
}
