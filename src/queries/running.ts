// queries/running.ts: sandboxes that are going on, and how to talk to them.
// Invariant: a sandbox that ends while it is talked to is left out, never an error.
import { AgsError } from '../protocol/errors.ts';
import { isUnderWay } from '../protocol/run-state.ts';
import type { NetworkMode, NetworkRule } from '../protocol/network.ts';
import { callControl } from '../lib/process/control.ts';
import type { StoredTask } from '../store/tasks.ts';
import { currentProject, readEntries } from './entries.ts';
import { findTask } from './find-task.ts';
import type { World } from '../run/host-context.ts';

/** What a runner understands, and what it answers. */
export interface ControlAnswers {
  'add-rules': { readonly added: number };
  rules: { readonly rules: readonly NetworkRule[]; readonly mode: NetworkMode };
  asks: { readonly asks: readonly Ask[] };
}

export interface Ask {
  readonly host: string;
  readonly port: number;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly count: number;
  readonly program?: string | undefined;
}

export type ControlRequest =
  | { readonly do: 'add-rules'; readonly rules: readonly NetworkRule[] }
  | { readonly do: 'rules' }
  | { readonly do: 'asks' };

/** Of this project, or of all. */
export async function runningTasks(world: World, where: 'here' | 'everywhere'): Promise<StoredTask[]> {
  const project = where === 'everywhere' ? null : await currentProject(world);
  return (await readEntries(world.stateDir)).flatMap((entry) => {
    if (entry.kind !== 'whole' || !isGoingOn(entry.stored)) return [];
    return project === null || entry.stored.task.project === project ? [entry.stored] : [];
  });
}

export async function runningTask(world: World, name: string): Promise<StoredTask> {
  const task = await findTask(world, name);
  if (isGoingOn(task)) return task;
  throw new AgsError('task.not-found', `${task.task.name} is not running.`, { hint: 'What runs: ags list' });
}

/** null: it has ended, or is not able to answer yet. */
export async function ask<R extends ControlRequest>(
  task: StoredTask,
  request: R,
): Promise<ControlAnswers[R['do']] | null> {
  return (await callControl(task.paths.root, request, ANSWER_MS)) as ControlAnswers[R['do']] | null;
}

const ANSWER_MS = 3000;

function isGoingOn({ run, live }: StoredTask): boolean {
  return live && isUnderWay(run.state);
}
