// results/task-branch.ts: the branch of a task in the user's repository, once its run is over: kept under another name, or removed.
// Invariant: only while it is where we put it; a branch that the user has moved is the user's.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { moveRef, readRef } from '../git/owner-git.ts';
import type { StoredTask } from '../store/tasks.ts';
import { branchOf } from './bring-out.ts';
import type { Capture } from './capture.ts';
import { repositoryAt } from '../run/project.ts';
import type { World } from '../run/host-context.ts';

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

/** Of all its runs; returns the names of those that went. */
export async function removeBranches(world: World, stored: StoredTask): Promise<string[]> {
  const commonDir = stored.task.goal === undefined ? null : await repositoryOf(world, stored);
  if (commonDir === null) return [];
  const own = branchOf(stored);
  // What a task that resolves conflicts began with.
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

/** Runs are numbered from 1. */
export const BEGUN = '0';

/** Where we have put its branches. What was brought out just before a runner was killed is in no run's file yet. */
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
