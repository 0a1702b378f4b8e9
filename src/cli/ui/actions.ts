// cli/ui/actions.ts: what `ags ui` can change, by the same functions as the commands. Each answers with one line for the user.
// Invariant: a merge takes what was shown. It is planned again when the user has agreed, and refused if it came out differently.
import { continueTask, sendMessage, stopTask } from '../../agent-run/control.ts';
import { findWork } from '../../agent-run/find-work.ts';
import { checksFor, havePassed, mergeRules } from '../../merge/checks.ts';
import { type MergePlan, openMerge } from '../../merge/merge.ts';
import { changeRules } from '../../network/change-rules.ts';
import { AgsError } from '../../protocol/errors.ts';
import { formatRule } from '../../protocol/network-rule.ts';
import { hasBegun } from '../../protocol/run-state.ts';
import { ask, type Ask } from '../../queries/running.ts';
import { riskyPatterns } from '../../results/review.ts';
import { readTask, type StoredTask } from '../../store/tasks.ts';
import { taskNotFound } from '../../store/task-lock.ts';
import { changeLine } from '../review/show-change.ts';
import { createPaint } from '../terminal/colour.ts';
import { age, count } from '../terminal/format.ts';
import type { Context } from '../verb.ts';
import { fromPainted, type Line, span } from './cells.ts';

async function taskOf(ctx: Context, id: string): Promise<StoredTask> {
  const task = await readTask(ctx.stateDir, id);
  if (task === null) throw taskNotFound(id);
  return task;
}

export async function stop(ctx: Context, id: string): Promise<string> {
  return (await stopTask(await taskOf(ctx, id), false)) ? `${id} is being stopped.` : `${id} was not running.`;
}

export async function goOn(ctx: Context, id: string): Promise<string> {
  const task = await taskOf(ctx, id);
  await continueTask(ctx.host, task);
  return `${id} ${hasBegun(task.run) ? 'continues' : 'starts'}.`;
}

export async function send(ctx: Context, id: string, text: string): Promise<string> {
  return DELIVERED[await sendMessage(ctx.host, await taskOf(ctx, id), text)].replace('%', id);
}

const DELIVERED = {
  now: '% has received it.',
  later: '% receives it after this turn.',
  begun: '% continues with it.',
} as const;

/** Connections that wait for an answer. */
export async function waitingAsks(ctx: Context, id: string): Promise<readonly Ask[]> {
  return (await ask(await taskOf(ctx, id), { do: 'asks' }))?.asks ?? [];
}

export async function answerHost(
  ctx: Context,
  id: string,
  { host, port }: Pick<Ask, 'host' | 'port'>,
  answer: 'allow' | 'allow-project' | 'deny',
): Promise<string> {
  const { task } = await taskOf(ctx, id);
  const rule = formatRule({ host, port, methods: null, path: null });
  // The project of the task, wherever the user is.
  const context = { ...ctx.host, cwd: task.project };
  const project = answer === 'allow-project';
  await changeRules(
    context,
    answer === 'deny' ? 'deny' : 'allow',
    [rule],
    project ? { kind: 'project' } : { kind: 'task', name: id },
  );
  if (answer === 'deny') return `Denied ${rule} in ${id}, until it ends.`;
  return project ? `Allowed ${rule} in ags.yaml of this project.` : `Allowed ${rule} in ${id}, until it ends.`;
}

export interface MergeProposal {
  readonly title: string;
  readonly text: readonly Line[];
  /** null: there is nothing to merge, or the checks must pass first. */
  readonly act: (() => Promise<string>) | null;
  /** The project's checks must pass first. */
  readonly needsChecks: boolean;
}

const SHOWN = 12;

export async function proposeMerge(ctx: Context, id: string): Promise<MergeProposal> {
  const open = async (): Promise<{ task: StoredTask; merge: Awaited<ReturnType<typeof openMerge>> }> => {
    const task = await findWork(ctx.host, id);
    const request = {
      paths: [],
      risky: [],
      riskyPatterns: await riskyPatterns(ctx.host, task.task.project),
      into: undefined,
      keepCommits: false,
      message: undefined,
    };
    return { task, merge: await openMerge(ctx.host, task, request) };
  };
  const { task, merge } = await open();
  const { plan } = merge;
  // Others can merge while the user thinks.
  merge[Symbol.dispose]();
  const rules = await mergeRules(ctx.host, task.task.project);
  const needsChecks = plan.to !== null && rules.required && !havePassed(task, plan.tree, rules.checks);
  const branch = branchOf(plan);
  return {
    title: `Merge ${id}`,
    text: mergeText(plan, id, { checks: checksText(ctx, task, plan.tree, rules.checks.run.length), needsChecks }),
    needsChecks,
    act:
      plan.to === null || needsChecks
        ? null
        : async () => {
            using again = (await open()).merge;
            if (again.plan.tree !== plan.tree || again.plan.from !== plan.from || again.plan.ref !== plan.ref)
              throw new AgsError('project.changed', `${branch} or ${id} has changed meanwhile; nothing was merged.`, {
                hint: 'Look at it again.',
              });
            await again.carryOut();
            return `Merged ${count(plan.take.length, 'file')} of ${id} into ${branch} (${(again.plan.to ?? '').slice(0, 10)}). To undo: ags undo ${id}`;
          },
  };
}

function mergeText(
  plan: MergePlan,
  id: string,
  { checks, needsChecks }: { checks: string | null; needsChecks: boolean },
): Line[] {
  const paint = createPaint(true);
  const branch = branchOf(plan);
  const leftOut: Line[] =
    plan.risky.length === 0
      ? []
      : [
          [span('Left out, because they can run code on this machine or in CI:', 'yellow')],
          ...plan.risky.slice(0, SHOWN).map((change): Line => [span(`  ${change.path}`)]),
          ...more(plan.risky.length),
          [span(`To choose them too: ags merge ${id} --patch`, 'dim')],
        ];
  if (plan.to === null)
    return [
      [span(plan.risky.length > 0 ? 'Nothing else is left to merge.' : `${branch} has these changes already.`)],
      ...leftOut,
    ];
  return [
    [span(`${count(plan.take.length, 'file')} onto `), span(branch, 'bold')],
    ...plan.take.slice(0, SHOWN).map((change): Line => [span('  '), ...fromPainted(changeLine(change, paint))]),
    ...more(plan.take.length),
    ...leftOut,
    ...(checks === null ? [] : [[span(`Checks: ${checks}`)]]),
    ...(needsChecks ? [[span('This project merges only what has passed its checks.', 'yellow')]] : []),
  ];
}

function more(length: number): Line[] {
  return length > SHOWN ? [[span(`  and ${length - SHOWN} more`)]] : [];
}

/** null: the project has no checks. */
function checksText(ctx: Context, task: StoredTask, tree: string, configured: number): string | null {
  const last = checksFor(task, tree);
  if (last === null) return configured === 0 ? null : 'not run for this result';
  return `${last.state}, ${age(ctx.now().getTime() - (last.endedAtMs ?? 0))} ago`;
}

function branchOf({ ref }: MergePlan): string {
  return ref.replace('refs/heads/', '');
}
