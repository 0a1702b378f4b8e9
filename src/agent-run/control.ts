// agent-run/control.ts: controls an agent's task from outside: stops it, sends it messages, restarts it.
// Invariant: a running task is changed only through its runner, an ended one only under its lock. No message is lost.
import { copyFileSync, existsSync, mkdirSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError } from '../protocol/errors.ts';
import { advance, hasBegun, isUnderWay } from '../protocol/run-state.ts';
import { callControl } from '../lib/process/control.ts';
import { errorCode } from '../lib/error-code.ts';
import { isAlive, ownIdentity, type ProcessIdentity } from '../lib/process/liveness.ts';
import { lockHolder } from '../lib/process/lock.ts';
import { removeTree } from '../lib/files.ts';
import { appendEvent } from '../store/events.ts';
import { readTask, writeRun, type StoredTask } from '../store/tasks.ts';
import { agentOf } from './plan-agent.ts';
import { holdTask, lockTask, taskNotFound } from '../store/task-lock.ts';
import { keepBranchAs } from '../results/task-branch.ts';
import { GO_ON, putMessage, waitingMessages, withdrawMessage, type WaitingMessage } from './inbox.ts';
import { firstRun, spawnRunner } from './start.ts';
import { stopChecks } from './stop-checks.ts';
import { timeSoFar } from '../queries/list.ts';
import type { HostContext } from '../run/host-context.ts';

const ANSWER_MS = 5000;

export function isLive({ live, run }: StoredTask): boolean {
  return live && isUnderWay(run.state);
}

export function requireAgent(stored: StoredTask): NonNullable<StoredTask['task']['goal']> {
  if (stored.task.goal !== undefined) return stored.task.goal;
  throw new AgsError('usage.invalid', `${stored.task.name} is a command, not an agent with a goal.`, {
    hint: 'Start an agent: ags start --agent claude "<goal>"',
  });
}

/** Returns false if it was not running. */
export async function stopTask(stored: StoredTask, force: boolean): Promise<boolean> {
  if (!isLive(stored)) return false;
  const answer = await callControl(stored.paths.root, { do: 'stop', force }, ANSWER_MS);
  // The socket does not exist yet, or cannot be reached. The runner also stops on signals.
  return answer !== null || terminate(stored.run.runner);
}

/** Returns false if it has just ended. */
function terminate(runner: ProcessIdentity): boolean {
  try {
    return isAlive(runner) && process.kill(runner.pid, 'SIGTERM');
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return false;
    throw error;
  }
}

/** Until the task can be used by another command: its runner holds it a little longer than its state tells. Gives up after 30 s. */
export async function waitUntilOver(context: Pick<HostContext, 'stateDir'>, id: string): Promise<void> {
  for (let left = 300; left > 0; left--) {
    const now = await readTask(context.stateDir, id);
    if (now === null || (!isLive(now) && lockHolder(now.paths.lock)?.pid !== now.run.runner.pid)) return;
    await sleep(100);
  }
}

/** now: the agent has it. later: the agent gets it after its turn. begun: the task had ended, and continues with this message. */
type Delivered = 'now' | 'later' | 'begun';

export function sendMessage(context: HostContext, stored: StoredTask, text: string): Promise<Delivered> {
  return deliver(context, stored, text);
}

/** Goes on with a task that stopped, failed or was killed. One that never began starts with its goal. */
export function continueTask(context: HostContext, stored: StoredTask): Promise<Delivered> {
  if (isLive(stored)) throw new AgsError('task.busy', `${stored.task.name} is running.`);
  return deliver(context, stored, null);
}

/** Starts a task without the one that it waits for, from the commit that its goal was given on. */
export async function startWithoutOther(context: HostContext, stored: StoredTask): Promise<void> {
  await stopTask(stored, false);
  await waitUntilOver(context, stored.task.id);
  const now = (await readTask(context.stateDir, stored.task.id)) ?? stored;
  if (!isLive(now)) {
    using _held = holdTask(now);
    writeRun(now.paths, { ...now.run, after: undefined }, { durable: true });
  }
  await continueTask(context, (await readTask(context.stateDir, stored.task.id)) ?? now);
}

/** Without a text, the agent is told to go on. */
async function deliver(context: HostContext, stored: StoredTask, text: string | null): Promise<Delivered> {
  const goal = requireAgent(stored);
  if (goal.interactive && hasBegun(stored.run))
    throw new AgsError('usage.invalid', `${stored.task.name} has a terminal: type your message there.`, {
      hint: `Attach to it: ags attach ${stored.task.name}`,
    });
  for (let left = TRIES; ; left--) {
    const now = (await readTask(context.stateDir, stored.task.id)) ?? stored;
    if (isLive(now)) {
      if (text === null) return 'begun';
      const answer = (await callControl(now.paths.root, { do: 'send', text }, ANSWER_MS)) as {
        delivered: 'now' | 'later';
      } | null;
      if (answer !== null) return answer.delivered;
    } else if (startTurn(context, now, text)) return 'begun';
    // The run is just ending, or another command holds the task's lock.
    if (left === 0)
      throw new AgsError('task.busy', `${stored.task.name} is in use by another command.`, {
        hint: 'Try again.',
      });
    await sleep(100);
  }
}

/** Messages that the agent has not received yet. */
export function waitingFor({ paths }: StoredTask): WaitingMessage[] {
  return waitingMessages(paths);
}

/** Returns the text of the message; null: the agent has it already. */
export function withdraw({ paths }: StoredTask, id: string): string | null {
  return withdrawMessage(paths, id);
}

const TRIES = 50;

/** Starts the goal of a run that has not begun, or another turn. Returns false if another command holds the task's lock. */
function startTurn(context: HostContext, stored: StoredTask, text: string | null): boolean {
  const { paths, run } = stored;
  const lock = lockTask(paths);
  if (lock === 'busy') return false;
  if (lock === 'gone') throw taskNotFound(stored.task.name);
  using _held = lock;
  const begun = hasBegun(run);
  if (begun && !agentOf(requireAgent(stored)).resumes)
    throw new AgsError('usage.invalid', `${agentOf(requireAgent(stored)).title} cannot resume a conversation.`, {
      hint: `Start it again: ags restart ${stored.task.name}`,
    });
  const message = text ?? (begun ? GO_ON : null);
  if (message !== null) putMessage(paths, message, context.now().getTime());
  const soFar = timeSoFar(stored);
  appendEvent(paths.events, { task: stored.task.id, at: context.now() }, { type: 'run.queued', run: run.number ?? 1 });
  const { endedAtMs: _ended, reason: _reason, interrupted: _interrupted, waitsUntilMs: _until, ...rest } = run;
  // The file of an interrupted run still says "running".
  const state = isUnderWay(run.state) ? 'queued' : advance(run.state, 'queued');
  // The next turn may change files that were already reviewed, so earlier decisions do not count.
  const time = { ...soFar, sinceMs: context.now().getTime() };
  const next = { ...rest, time, state, exitCode: null, settled: [], ignoredDiscarded: false, runner: ownIdentity() };
  writeRun(paths, next, { durable: true });
  spawnRunner(context, paths, stored.task.id, next);
  return true;
}

/** Starts a new run for the same goal. The work of the earlier run stays on its own branch. */
export async function restartTask(context: HostContext, stored: StoredTask): Promise<void> {
  const goal = requireAgent(stored);
  if (isLive(stored))
    throw new AgsError('task.busy', `${stored.task.name} is running.`, {
      hint: `Stop it first: ags stop ${stored.task.name}`,
    });
  const { paths, run, task } = stored;
  using _held = holdTask(stored);
  await stopChecks(paths);
  const number = run.number ?? 1;
  const earlier = join(paths.earlier, String(number));
  mkdirSync(earlier, { recursive: true, mode: 0o700 });
  // Replace run.json before anything else changes: a task without it counts as never created. After an interruption from here on,
  // the task has a run that never started and can be restarted.
  copyFileSync(paths.run, join(earlier, basename(paths.run)));
  const waits = run.after === undefined ? {} : { after: run.after };
  const next = { ...firstRun(goal.base, context.now().getTime(), number + 1), ...waits };
  writeRun(paths, next, { durable: true });
  try {
    await keepBranchAs(context, stored, `${task.name}.${number}`);
  } catch (error) {
    writeRun(paths, run, { durable: true });
    throw error;
  }
  for (const path of [
    paths.changes,
    paths.events,
    paths.agentLog,
    paths.staging,
    paths.checks,
    paths.checksDir,
    join(paths.root, 'capture.json'),
  ])
    if (existsSync(path)) renameSync(path, join(earlier, basename(path)));
  removeTree(paths.runDir);
  removeTree(paths.services);
  removeTree(paths.inbox);
  const at = { task: task.id, at: context.now() };
  appendEvent(paths.events, at, { type: 'run.queued', goal: goal.text, agent: goal.agent, run: number + 1 });
  spawnRunner(context, paths, task.id, next);
}
