// agent-run/control.ts: what people do with a task of an agent from outside: stop it, tell it something, begin it anew.
// Invariant: a run that goes on is talked to through its runner; one that is over is changed under its lock. Nothing said is lost.
import { copyFileSync, existsSync, mkdirSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError } from '../protocol/errors.ts';
import { advance, isUnderWay } from '../protocol/run-state.ts';
import { callControl } from '../lib/process/control.ts';
import { errorCode } from '../lib/error-code.ts';
import { isAlive, ownIdentity, type ProcessIdentity } from '../lib/process/liveness.ts';
import { removeTree } from '../lib/files.ts';
import { appendEvent } from '../store/events.ts';
import { readTask, writeRun, type StoredTask } from '../store/tasks.ts';
import { agentOf } from './plan-agent.ts';
import { holdTask, lockTask, taskNotFound } from '../store/task-lock.ts';
import { keepBranchAs } from '../results/task-branch.ts';
import { putMessage, waitingMessages, withdrawMessage, type WaitingMessage } from './inbox.ts';
import { firstRun, spawnRunner } from './start.ts';
import { stopChecks } from './stop-checks.ts';
import type { World } from '../run/host-context.ts';

const ANSWER_MS = 5000;

export function isLive({ live, run }: StoredTask): boolean {
  return live && isUnderWay(run.state);
}

export function requireAgent(stored: StoredTask): NonNullable<StoredTask['task']['goal']> {
  if (stored.task.goal !== undefined) return stored.task.goal;
  throw new AgsError('usage.invalid', `${stored.task.name} is a command, not an agent with a goal.`, {
    hint: 'Agents are started with: ags start --agent claude "<goal>"',
  });
}

/** False: it was not running. */
export async function stopTask(stored: StoredTask, force: boolean): Promise<boolean> {
  if (!isLive(stored)) return false;
  const answer = await callControl(stored.paths.root, { do: 'stop', force }, ANSWER_MS);
  // No socket yet, or one that cannot be had here: the runner understands signals as well.
  return answer !== null || terminate(stored.run.runner);
}

/** False: it has just ended. */
function terminate(runner: ProcessIdentity): boolean {
  try {
    return isAlive(runner) && process.kill(runner.pid, 'SIGTERM');
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return false;
    throw error;
  }
}

/** Or for half a minute. */
export async function waitUntilOver(world: World, id: string): Promise<void> {
  for (let left = 300; left > 0; left--) {
    const now = await readTask(world.stateDir, id);
    if (now === null || !isLive(now)) return;
    await sleep(100);
  }
}

/** now: the agent has it. later: when its turn is over. begun: it had ended, and goes on with this. */
export async function sendMessage(world: World, stored: StoredTask, text: string): Promise<'now' | 'later' | 'begun'> {
  const goal = requireAgent(stored);
  if (goal.interactive)
    throw new AgsError('usage.invalid', `${stored.task.name} has a terminal: talk to it there.`, {
      hint: `ags attach ${stored.task.name}`,
    });
  for (let left = TRIES; ; left--) {
    const now = (await readTask(world.stateDir, stored.task.id)) ?? stored;
    if (isLive(now)) {
      const answer = (await callControl(now.paths.root, { do: 'send', text }, ANSWER_MS)) as {
        delivered: 'now' | 'later';
      } | null;
      if (answer !== null) return answer.delivered;
    } else if (goOn(world, now, text)) return 'begun';
    // It is just ending, or somebody else holds it.
    if (left === 0)
      throw new AgsError('task.busy', `${stored.task.name} is being worked on by another command.`, {
        hint: 'Try again.',
      });
    await sleep(100);
  }
}

/** Messages that the agent has not had yet. */
export function waitingFor({ paths }: StoredTask): WaitingMessage[] {
  return waitingMessages(paths);
}

/** What it said; null: the agent has it already. */
export function withdraw({ paths }: StoredTask, id: string): string | null {
  return withdrawMessage(paths, id);
}

/** What stopped, failed or was killed goes on where it was. */
export function continueTask(world: World, stored: StoredTask): ReturnType<typeof sendMessage> {
  if (isLive(stored)) throw new AgsError('task.busy', `${stored.task.name} is running.`);
  return sendMessage(world, stored, 'Go on where you were, until the goal is reached.');
}

const TRIES = 50;

/** Another turn of a run that has ended. False: somebody else holds the task. */
function goOn(world: World, stored: StoredTask, text: string): boolean {
  const { paths, run } = stored;
  const lock = lockTask(paths);
  if (lock === 'busy') return false;
  if (lock === 'gone') throw taskNotFound(stored.task.name);
  using _held = lock;
  if (run.layers === undefined && run.begins === undefined)
    throw new AgsError('usage.invalid', `${stored.task.name} never began, so there is nothing to go on with.`, {
      hint: `Begin it anew: ags restart ${stored.task.name}`,
    });
  if (!agentOf(requireAgent(stored)).resumes)
    throw new AgsError('usage.invalid', `${agentOf(requireAgent(stored)).title} cannot take up a conversation again.`, {
      hint: `Begin it anew: ags restart ${stored.task.name}`,
    });
  putMessage(paths, text, world.now().getTime());
  appendEvent(paths.events, { task: stored.task.id, at: world.now(), type: 'run.queued', run: run.number ?? 1 });
  const { endedAtMs: _ended, reason: _reason, ...rest } = run;
  // An interrupted run is still called running.
  const state = isUnderWay(run.state) ? 'queued' : advance(run.state, 'queued');
  // What was decided about its files so far may no longer be about what they are then.
  const next = { ...rest, state, exitCode: null, settled: [], ignoredDiscarded: false, runner: ownIdentity() };
  writeRun(paths, next, { durable: true });
  spawnRunner(world, paths, stored.task.id, next);
  return true;
}

/** The same goal again, from its start: a new run. What the earlier one did stays, on a branch of its own. */
export async function restartTask(world: World, stored: StoredTask): Promise<void> {
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
  // The file of the new run takes the place of the old one before anything else changes: a task without one counts as one that never was,
  // and whoever is cut off from here on has a run that never began, which can be begun again.
  copyFileSync(paths.run, join(earlier, basename(paths.run)));
  const next = firstRun(goal.base, world.now().getTime(), number + 1);
  writeRun(paths, next, { durable: true });
  try {
    await keepBranchAs(world, stored, `${task.name}.${number}`);
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
  appendEvent(paths.events, {
    task: task.id,
    at: world.now(),
    type: 'run.queued',
    goal: goal.text,
    agent: goal.agent,
    run: number + 1,
  });
  spawnRunner(world, paths, task.id, next);
}
