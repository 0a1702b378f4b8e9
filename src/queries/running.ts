// queries/running.ts: finds running tasks and sends requests to their runners.
// Invariant: a task that ends during a request is left out; it never causes an error.
import { AgsError } from '../protocol/errors.ts';
import { isUnderWay } from '../protocol/run-state.ts';
import type { NetworkMode, NetworkRule } from '../protocol/network.ts';
import { callControl } from '../lib/process/control.ts';
import type { StoredTask } from '../store/tasks.ts';
import { currentProject, readEntries } from './entries.ts';
import { findTask } from './find-task.ts';
import type { HostContext } from '../run/host-context.ts';

/** The requests that a runner understands, with its answers. */
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

export async function runningTasks(context: HostContext, where: 'here' | 'everywhere'): Promise<StoredTask[]> {
  const project = where === 'everywhere' ? null : await currentProject(context);
  return (await readEntries(context.stateDir)).flatMap((entry) => {
    if (entry.kind !== 'whole' || !isRunning(entry.stored)) return [];
    return project === null || entry.stored.task.project === project ? [entry.stored] : [];
  });
}

export async function runningTask(context: HostContext, name: string): Promise<StoredTask> {
  const task = await findTask(context, name);
  if (isRunning(task)) return task;
  throw new AgsError('task.not-found', `${task.task.name} is not running.`, { hint: 'List running tasks: ags list' });
}

/** null: the task has ended, or its runner does not listen yet. */
export async function ask<R extends ControlRequest>(
  task: StoredTask,
  request: R,
): Promise<ControlAnswers[R['do']] | null> {
  return (await callControl(task.paths.root, request, ANSWER_MS)) as ControlAnswers[R['do']] | null;
}

const ANSWER_MS = 3000;

function isRunning({ run, live }: StoredTask): boolean {
  return live && isUnderWay(run.state);
}
