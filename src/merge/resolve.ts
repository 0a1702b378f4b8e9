// merge/resolve.ts: hands a conflict to an agent, as a new task whose files hold both sides with git's conflict markers.
// Also shows what the branch and the task each changed in one file, to judge a conflict.
// Invariant: the new task begins on the target branch, so its result is reviewed and merged against that branch like any other work. The
// original task, its branch and the user's files stay unchanged.
import { AgsError } from '../protocol/errors.ts';
import { visible } from '../lib/sanitize.ts';
import { BROUGHT_LIMITS } from '../git/staging/brought.ts';
import { signature, writeCommit } from '../git/commit-text.ts';
import { mergeTrees } from '../git/staging/merge-trees.ts';
import { moveRef, readRef, sendPack } from '../git/owner-git.ts';
import { treeOf, listTree } from '../git/staging/staging.ts';
import { readFileText, type ShownFile, mergeBase } from '../results/change-set.ts';
import type { StoredTask } from '../store/tasks.ts';
import { branchOf, userOf } from '../results/bring-out.ts';
import { findSides, repositoryOf, targetOf } from './merge-tree.ts';
import { shortName } from '../results/move-files.ts';
import { requireAgent } from '../agent-run/control.ts';
import { agentLike } from '../agent-run/fork.ts';
import { startTasks } from '../agent-run/start.ts';
import { BEGUN } from '../results/task-branch.ts';
import type { HostContext } from '../run/host-context.ts';

export interface ResolveWish {
  /** A branch by its short name; by default the one that the task was started from. */
  readonly into: string | undefined;
  /** By default the agent of the task. */
  readonly agent: string | undefined;
}

export async function resolveTask(
  context: HostContext,
  stored: StoredTask,
  wish: ResolveWish,
): Promise<{ task: StoredTask; conflicts: readonly string[] }> {
  const goal = requireAgent(stored);
  const { agent, repository, ref } = await findSides(context, stored, wish.into);
  const tip = await readRef(repository.commonDir, ref);
  if (tip === null) throw new AgsError('path.not-found', `There is no branch ${shortName(ref)} in this repository.`);
  const { staging } = stored.paths;
  const merged = await mergeTrees(staging, {
    base: await mergeBase(context, stored, { base: agent.base, repository, ref, tip }),
    ours: await treeOf(staging, tip),
    theirs: agent.tree,
  });
  if ('tree' in merged)
    throw new AgsError('usage.invalid', `${stored.task.name} has no conflict with ${shortName(ref)}.`, {
      hint: `Merge it: ags merge ${stored.task.name}`,
    });
  const who = signature(userOf(repository), context.now());
  const both = await writeCommit(staging, {
    tree: merged.marked,
    parents: [tip],
    author: who,
    committer: who,
    message: `${shortName(ref)} and ${stored.task.name} together, with their conflicts\n`,
  });
  await sendPack(staging, `${both}\n^${tip}\n^${agent.commit}\n`, repository.commonDir, BROUGHT_LIMITS.timeoutMs);
  const [task] = await startTasks(
    { ...context, cwd: stored.task.project },
    {
      goals: [{ text: resolveGoal(stored, ref, merged.conflicts), name: null }],
      ...agentLike(goal, wish.agent),
      attempts: 1,
      interactive: false,
      base: null,
      maxSeconds: goal.maxSeconds,
      maxCostMicros: goal.maxCostMicros,
      maxTurns: goal.maxTurns,
      maxTokens: goal.maxTokens,
      parallel: goal.parallel,
      flags: goal.flags,
      on: { base: both, baseRef: ref, origin: tip },
    },
  );
  if (task === undefined) throw new Error('no task was made');
  // No other ref in the repository leads to the commit that the new task is based on.
  await moveRef(
    repository.commonDir,
    `${branchOf(task)}.${BEGUN}`,
    null,
    both,
    `ags: what ${task.task.name} begins with`,
  );
  return { task, conflicts: merged.conflicts };
}

const MOST_NAMED = 100;

function resolveGoal({ task }: StoredTask, ref: string, conflicts: readonly string[]): string {
  const branch = shortName(ref);
  const named = conflicts.slice(0, MOST_NAMED).map((path) => `- ${visible(path)}`);
  const more = conflicts.length > MOST_NAMED ? [`- and ${conflicts.length - MOST_NAMED} more`] : [];
  return [
    `Resolve ${task.name} against ${branch}`,
    '',
    `The files here are ${branch} and the work of the task ${task.name} in one. Both changed these files, in ways that do not fit together:`,
    ...named,
    ...more,
    '',
    `Where git could not decide, it left marks: from <<<<<<< to ======= is what ${branch} says, from ======= to >>>>>>> what the task wrote. A file that one side deleted is here as the other has it.`,
    'Put both into one, so that what each side wanted still holds, leave no mark behind, and change nothing else. Run the tests if there are any.',
    '',
    'What the task was asked to do:',
    task.goal?.text ?? '',
  ].join('\n');
}

export async function bothSides(
  context: HostContext,
  stored: StoredTask,
  { before, after, change }: ShownFile,
  into: string | undefined,
  maxBytes: number,
): Promise<{ branch: string; yours: string; theirs: string }> {
  const ref = targetOf(stored, into);
  const { commonDir } = await repositoryOf(context, stored.task.project);
  const tip = await readRef(commonDir, ref);
  if (tip === null) throw new AgsError('path.not-found', `There is no branch ${shortName(ref)} in this repository.`);
  const path = change.from ?? change.path;
  const there = (await listTree(stored.paths.staging, tip, [path])).find((entry) => entry.path === path)?.oid ?? null;
  const diff = async (now: string | null): Promise<string> =>
    (await readFileText(stored, { before, after: now }, maxBytes)).diff.toString('utf8');
  return { branch: shortName(ref), yours: await diff(there), theirs: await diff(after) };
}
