// results/bring-out.ts: puts an agent's work, committed or not, onto the branch ags/<task> of the user's repository.
// Invariant: objects leave the sandbox as one checked pack, are judged in our own staging, and only then reach the repository,
// named by full id. HEAD, index, work tree and every other ref of the user stay unchanged. If a step fails, the task keeps
// the work and the next call tries again.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { removeTree, replaceFile } from '../lib/files.ts';
import { tryLock } from '../lib/process/lock.ts';
import { visible } from '../lib/sanitize.ts';
import { BROUGHT_LIMITS, judgeHistory, requireWhole } from '../git/staging/brought.ts';
import { oneLine, readCommit, signature, withTrailers, writeCommit, type Person } from '../git/commit-text.ts';
import { realFile } from '../git/copy-real.ts';
import { stagingGit } from '../git/host-git.ts';
import type { Repository } from '../git/repository.ts';
import { objectStores } from '../git/object-stores.ts';
import { moveRef, readRef, sendPack } from '../git/owner-git.ts';
import { createStaging, receivePack } from '../git/staging/staging.ts';
import { workTrees } from '../git/work-trees.ts';
import type { StoredTask } from '../store/tasks.ts';
import { AGENT_GIT, agentStore, gitEnv, readAgentTree, type AgentTree, captureFrom } from './agent-tree.ts';
import { readCapture } from './capture.ts';
import { explainDiskErrors } from '../run/disk-errors.ts';
import { onceMore, openInspections, type Inspect } from '../run/inspection.ts';
import { repositoryAt } from '../run/project.ts';
import { configInput, type HostContext } from '../run/host-context.ts';

export interface BroughtOut {
  readonly commit: string;
  readonly files: number;
  readonly added: number;
  readonly removed: number;
}

export interface BringOutDetails {
  readonly agentTitle: string;
  readonly agentEmail: string;
  /** Patterns as in .gitignore for the agent's own files, which are not part of its work. */
  readonly scratch: readonly string[];
}

/** Leaves the task's branch in the user's repository at `commit`. Returns null if the agent changed nothing. */
export function bringOut(
  context: HostContext,
  stored: StoredTask,
  details: BringOutDetails,
): Promise<BroughtOut | null> {
  return explainDiskErrors(context, async () => {
    using lock = tryLock(join(stored.paths.root, 'bring-out.lock'));
    if (lock === null) throw new AgsError('task.busy', `The work of ${stored.task.name} is already being brought out.`);
    return await bring(context, stored, details);
  });
}

async function bring(context: HostContext, stored: StoredTask, details: BringOutDetails): Promise<BroughtOut | null> {
  const base = stored.task.goal?.base ?? stored.run.base;
  if (base === null) throw new Error('a task of an agent without the commit it started from');
  const repository = await findRepository(context, stored);
  const outDir = join(stored.paths.runDir, 'bring');
  removeTree(outDir);
  try {
    const stores = await findStores(context, stored, repository);
    const ask = await openInspections(context, stored, outDir, [
      { from: stored.paths.git, to: AGENT_GIT, why: "the agent's git directory" },
      ...stores.map((from, i) => ({ from, to: agentStore(i), why: 'objects of your repository' })),
    ]);
    const found = await readAgentTree({
      context,
      task: stored,
      repository,
      base,
      scratch: details.scratch,
      stores: stores.length,
      outDir,
      ask,
    });
    prepareStaging(stored, repository);
    const { parent, notKept } = await receive(stored, ask, found, base);
    const earlier = readCapture(stored)?.agent ?? null;
    const ref = branchOf(stored);
    const current = await readRef(repository.commonDir, ref);
    const tip = await topCommit(context, { stored, repository, details, found, base, parent, current });
    await requireWhole(stored.paths.staging, tip, base);
    const { capture, result } = await captureFrom(stored, {
      // Taking the work of a fork includes the work that the fork began with.
      base: stored.task.goal?.origin ?? base,
      commit: tip,
      tree: found.tree,
      refused: found.refused,
      notKept,
      by: { name: details.agentTitle, email: details.agentEmail },
      // The branch may be at either of these two commits: ags put it at both.
      earlier: current !== null && current === earlier?.commit ? current : (earlier?.earlier ?? null),
    });
    // Written before the repository is touched, so a review works even if the repository cannot be written.
    replaceFile(join(stored.paths.root, 'capture.json'), JSON.stringify(capture), { durable: true });
    if (result === null && current === null) return null;
    await putOnBranch(stored, repository, { ref, base, tip, current, ours: [earlier?.commit, earlier?.earlier] });
    return result;
  } finally {
    removeTree(outDir);
  }
}

async function findRepository(context: HostContext, { task }: StoredTask): Promise<Repository> {
  const repository = await repositoryAt(context, task.project);
  if (repository !== null) return repository;
  throw new AgsError('project.unsuitable', `There is no git repository at ${visible(task.project)} any more.`, {
    hint: "Put the repository back. The task keeps the agent's work.",
  });
}

/** Same rule as when the run was prepared: stores outside the repository are shown only if the user's configuration shows them. */
async function findStores(context: HostContext, { task }: StoredTask, repository: Repository): Promise<string[]> {
  const places = { root: repository.root, commonDir: repository.commonDir };
  const all = (shown: readonly string[]): string[] =>
    objectStores(repository.commonDir, { ...places, shown }).map(({ path }) => path);
  try {
    return all([]);
  } catch (error) {
    if (!(error instanceof AgsError)) throw error;
    const { loadConfig } = await import('../config/load.ts');
    const config = await loadConfig(configInput(context, task.project, task.goal?.flags ?? {}));
    return all(config.mounts.map(({ path }) => path));
  }
}

function prepareStaging({ paths, run }: StoredTask, repository: Repository): void {
  if (!existsSync(join(paths.staging, 'config')))
    createStaging(paths.staging, run.objectFormat, { bare: true, borrows: [join(repository.commonDir, 'objects')] });
  const shallow = realFile(repository.commonDir, 'shallow');
  if (shallow !== null) writeFileSync(join(paths.staging, 'shallow'), readFileSync(shallow));
}

const PACK =
  'c=$(git commit-tree -p "$1" -m brought "$2") && printf "%s\\n^%s\\n" "$c" "$3" | git pack-objects --revs --stdout -q --threads=1';

/** Receives the checked objects. `parent` is the agent's last commit if its history can be kept, otherwise null. */
async function receive(
  stored: StoredTask,
  ask: Inspect,
  found: AgentTree,
  base: string,
): Promise<{ parent: string | null; notKept: string | null }> {
  let notKept: string | null = null;
  const { staging } = stored.paths;
  const pack = (parent: string): Promise<Buffer> => onceMore(() => packFrom(parent));
  const packFrom = (parent: string): Promise<Buffer> =>
    ask({
      argv: ['sh', '-c', PACK, 'sh', parent, found.tree, base],
      input: Buffer.alloc(0),
      env: gitEnv(stored),
      cover: found.pipes,
      deadlineMs: BROUGHT_LIMITS.timeoutMs,
      consume: (answer) =>
        receivePack(staging, answer, BROUGHT_LIMITS.packBytes, BROUGHT_LIMITS.timeoutMs, BROUGHT_LIMITS.objects),
    });
  if (found.head !== null && found.head !== base && found.headTree !== null) {
    try {
      await pack(found.head);
      await requireWhole(staging, found.head, base);
      const history = await judgeHistory(staging, found.head, base, found.wrong);
      if (history.keep) return { parent: found.head, notKept };
      notKept = history.why;
    } catch (error) {
      // Something in the agent's commits must not come out. The final files alone may still be acceptable.
      if (!(error instanceof AgsError) || error.code !== 'capture.refused') throw error;
      notKept = error.message;
    }
  }
  await pack(base);
  return { parent: null, notKept };
}

export function branchOf({ task }: StoredTask): string {
  return `refs/heads/ags/${/^[a-z0-9][a-z0-9-]{0,62}$/.test(task.name) ? task.name : task.id}`;
}

/** The commit with the Ags-* trailers: the agent's last commit rewritten, or one of ours with the uncommitted files. */
async function topCommit(
  context: HostContext,
  given: {
    stored: StoredTask;
    repository: Repository;
    details: BringOutDetails;
    found: AgentTree;
    base: string;
    parent: string | null;
    current: string | null;
  },
): Promise<string> {
  const { stored, repository, details, found, base, parent, current } = given;
  const { staging } = stored.paths;
  const goal = stored.task.goal?.text ?? stored.task.name;
  const trailers = [
    ['Ags-Goal', oneLine(goal, 500)],
    ['Ags-Task', stored.task.id],
    ['Ags-Run', `${stored.task.id}/${stored.run.number ?? 1}`],
    ['Ags-Agent', details.agentTitle],
  ] as const;
  const own = parent === null ? null : await commitAt(staging, parent);
  const committed = own !== null && found.tree === found.headTree;
  const wanted = {
    tree: found.tree,
    parents: committed ? own.parents : [parent ?? base],
    message: withTrailers(committed ? own.message : subjectOf(goal), trailers),
  };
  // Bringing out the same work again makes no new commit.
  const there = current === null ? null : await commitAt(staging, current);
  if (
    current !== null &&
    there?.tree === wanted.tree &&
    there.message === wanted.message &&
    there.parents.join() === wanted.parents.join()
  )
    return current;
  const now = context.now();
  return writeCommit(staging, {
    ...wanted,
    author: committed ? own.author : signature({ name: details.agentTitle, email: details.agentEmail }, now),
    committer: signature(userOf(repository), now),
  });
}

async function commitAt(staging: string, commit: string): ReturnType<typeof parsed> {
  return parsed(await stagingGit(staging, ['cat-file', 'commit', commit]));
}

async function parsed(found: { exitCode: number; stdout: Buffer }) {
  return found.exitCode === 0 ? readCommit(found.stdout) : null;
}

export function subjectOf(goal: string): string {
  return oneLine(goal.trim().split('\n')[0] ?? '', 72) || 'Work of an agent';
}

export function userOf({ settings }: Repository): Person {
  return { name: settings.get('user.name') ?? 'ags', email: settings.get('user.email') ?? 'ags@localhost' };
}

async function putOnBranch(
  stored: StoredTask,
  { commonDir, gitDir }: Repository,
  move: {
    ref: string;
    base: string;
    tip: string;
    current: string | null;
    ours: readonly (string | null | undefined)[];
  },
): Promise<void> {
  const { ref, current, tip } = move;
  if (current === tip) return;
  const name = ref.slice('refs/heads/'.length);
  if (current !== null && !move.ours.includes(current))
    throw new AgsError('project.changed', `The branch ${name} is not where ags left it.`, {
      hint: `Keep yours under another name, then bring the work out again: git branch -m ${name} <name>`,
    });
  const there = (await workTrees(gitDir)).find((one) => one.branch === ref);
  if (there !== undefined)
    throw new AgsError('project.changed', `The branch ${name} is checked out in ${visible(there.path)}.`, {
      hint: `Switch to another one there, then bring the work out again: git -C ${visible(there.path)} switch --detach`,
    });
  await sendPack(stored.paths.staging, `${tip}\n^${move.base}\n`, commonDir, BROUGHT_LIMITS.timeoutMs);
  const moved = await moveRef(commonDir, ref, current, tip, `ags: run ${stored.run.number ?? 1} of ${stored.task.id}`);
  if (moved !== 'moved')
    throw new AgsError('project.changed', `The branch ${name} was moved at the same time.`, { hint: 'Try again.' });
}
