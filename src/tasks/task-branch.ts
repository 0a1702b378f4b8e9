// tasks/task-branch.ts: the branch of a task in the user's repository, once its run is over: kept under another name, or removed.
// Invariant: only while it is where we put it; a branch that the user has moved is the user's.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { moveRef, readRef } from '../git/owner-git.ts';
import type { StoredTask } from '../store/tasks.ts';
import { branchOf } from './bring-out.ts';
import { repositoryAt } from './project.ts';
import type { World } from './world.ts';

/** So that the next run can have the name. False: there is none. */
export async function keepBranchAs(world: World, stored: StoredTask, name: string): Promise<boolean> {
  const found = await findBranch(world, stored);
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

/** Of all its runs. To be asked for while the task is there, and done once it is gone; returns the names of those that went. */
export function branchRemoval(world: World, stored: StoredTask): () => Promise<string[]> {
  const own = { ref: branchOf(stored), commit: stored.run.result?.commit };
  // What a task that resolves conflicts began with.
  const begun = { ref: `${own.ref}.${BEGUN}`, commit: stored.task.goal?.base };
  const earlier = earlierRuns(stored).map(({ number, commit }) => ({ ref: `${own.ref}.${number}`, commit }));
  return async () => {
    const commonDir = stored.task.goal === undefined ? null : await repositoryOf(world, stored);
    if (commonDir === null) return [];
    const gone: string[] = [];
    for (const { ref, commit } of [own, begun, ...earlier]) {
      if (commit === undefined || (await readRef(commonDir, ref)) !== commit) continue;
      if ((await moveRef(commonDir, ref, commit, null, 'ags: thrown away')) === 'moved')
        gone.push(ref.replace('refs/heads/', ''));
    }
    return gone;
  };
}

/** Runs are numbered from 1. */
export const BEGUN = '0';

function earlierRuns({ paths }: StoredTask): { number: string; commit: string | undefined }[] {
  if (!existsSync(paths.earlier)) return [];
  return readdirSync(paths.earlier).map((number) => {
    try {
      const run = JSON.parse(readFileSync(join(paths.earlier, number, 'run.json'), 'utf8')) as {
        result?: { commit?: string };
      };
      return { number, commit: run.result?.commit };
    } catch {
      return { number, commit: undefined };
    }
  });
}

async function findBranch(
  world: World,
  stored: StoredTask,
): Promise<{ commonDir: string; ref: string; commit: string } | null> {
  const commonDir = await repositoryOf(world, stored);
  if (commonDir === null) return null;
  const ref = branchOf(stored);
  const commit = await readRef(commonDir, ref);
  return commit === null ? null : { commonDir, ref, commit };
}

/** null: it is not there any more. */
async function repositoryOf(world: World, stored: StoredTask): Promise<string | null> {
  if (!existsSync(stored.task.project)) return null;
  const repository = await repositoryAt(world, stored.task.project);
  return repository?.commonDir ?? null;
}
