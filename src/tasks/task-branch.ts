// tasks/task-branch.ts: the branch of a task in the user's repository, once its run is over: kept under another name, or removed.
// Invariant: only while it is where we put it; a branch that the user has moved is the user's.
import { AgsError } from '../protocol/errors.ts';
import { inspectRepository } from '../git/inspect.ts';
import { moveRef, readRef } from '../git/owner-git.ts';
import type { StoredTask } from '../store/tasks.ts';
import { branchOf } from './bring-out.ts';
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

/** False: there was none, or it is not where we put it. */
export async function removeBranch(world: World, stored: StoredTask): Promise<boolean> {
  const found = await findBranch(world, stored);
  if (found === null || found.commit !== stored.run.result?.commit) return false;
  return (await moveRef(found.commonDir, found.ref, found.commit, null, 'ags: thrown away')) === 'moved';
}

async function findBranch(
  world: World,
  stored: StoredTask,
): Promise<{ commonDir: string; ref: string; commit: string } | null> {
  const repository = await inspectRepository(stored.task.project, {
    home: world.home,
    configHome: world.env['XDG_CONFIG_HOME'],
    cacheDir: world.cacheDir,
  });
  if (repository === null) return null;
  const ref = branchOf(stored);
  const commit = await readRef(repository.commonDir, ref);
  return commit === null ? null : { commonDir: repository.commonDir, ref, commit };
}
