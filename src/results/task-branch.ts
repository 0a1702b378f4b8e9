// results/task-branch.ts: renames or removes the branch of a task in the user's repository after its run.
// Invariant: only while the branch is where ags put it; a branch that the user has moved belongs to the user.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { moveRef, readRef } from '../git/owner-git.ts';
import type { StoredTask } from '../store/tasks.ts';
import { branchOf } from './bring-out.ts';
import type { Capture } from './capture.ts';
import { repositoryAt } from '../run/project.ts';
import type { HostContext } from '../run/host-context.ts';

/** Renames the branch, so that the next run can have its name. Returns false if there is none. */
export async function keepBranchAs(context: HostContext, stored: StoredTask, name: string): Promise<boolean> {
  const found = await findBranch(context, stored);
  if (found === null) return false;
  const { commonDir, ref, commit } = found;
  const kept = `refs/heads/ags/${name}`;
  const made = await moveRef(commonDir, kept, null, commit, 'ags: an earlier run');
  if (made !== 'moved' && made.now !== commit)
    throw new AgsError('project.changed', `There is a branch ags/${name} already.`, {
      hint: `Rename or delete it: git branch -m ags/${name} <other>`,
    });
  await moveRef(commonDir, ref, commit, null, 'ags: a new run');
  return true;
}

/** Removes the branches of all runs of the task; returns the names of the removed ones. */
export async function removeBranches(context: HostContext, stored: StoredTask): Promise<string[]> {
  const commonDir = stored.task.goal === undefined ? null : await repositoryOf(context, stored);
  if (commonDir === null) return [];
  const own = branchOf(stored);
  // The commit that a task resolving conflicts began with.
  const begun = `${own}.${BEGUN}`;
  const ours = knownCommits(stored);
  const earlier = list(stored.paths.earlier).map((number) => `${own}.${number}`);
  const gone: string[] = [];
  for (const ref of [own, begun, ...earlier]) {
    const commit = await readRef(commonDir, ref);
    if (commit === null || !(ref === begun ? commit === stored.task.goal?.base : ours.has(commit))) continue;
    if ((await moveRef(commonDir, ref, commit, null, 'ags: thrown away')) === 'moved')
      gone.push(ref.replace('refs/heads/', ''));
  }
  return gone;
}

/** Runs are numbered from 1, so 0 is free. */
export const BEGUN = '0';

/** Commits that ags put the branches at. Work brought out just before a runner was killed is in no run's file yet. */
function knownCommits({ paths }: StoredTask): Set<string> {
  const runs = [paths.root, ...list(paths.earlier).map((number) => join(paths.earlier, number))];
  const found = runs.flatMap((dir) => [
    (readJson(join(dir, 'run.json')) as { result?: { commit?: string } } | null)?.result?.commit,
    (readJson(join(dir, 'capture.json')) as Partial<Capture> | null)?.agent?.commit,
    (readJson(join(dir, 'capture.json')) as Partial<Capture> | null)?.agent?.earlier,
  ]);
  return new Set(found.filter((commit) => typeof commit === 'string'));
}

const list = (dir: string): string[] => (existsSync(dir) ? readdirSync(dir) : []);

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

async function findBranch(
  context: HostContext,
  stored: StoredTask,
): Promise<{ commonDir: string; ref: string; commit: string } | null> {
  const commonDir = await repositoryOf(context, stored);
  if (commonDir === null) return null;
  const ref = branchOf(stored);
  const commit = await readRef(commonDir, ref);
  return commit === null ? null : { commonDir, ref, commit };
}

/** Returns null if the repository no longer exists. */
async function repositoryOf(context: HostContext, stored: StoredTask): Promise<string | null> {
  if (!existsSync(stored.task.project)) return null;
  const repository = await repositoryAt(context, stored.task.project);
  return repository?.commonDir ?? null;
}
