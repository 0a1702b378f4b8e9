// merge/merge-tree.ts: computes the tree that a branch would have after a merge, for the merge itself and for the checks before it.
// Invariant: computed from trees in our own staging, against the merge base (results/change-set.ts). Files that can run code are taken
// only if they were named. Nothing of the user's is changed.
import { AgsError } from '../protocol/errors.ts';
import type { Change } from '../protocol/changes.ts';
import { signature, withTrailers, writeCommit } from '../git/commit-text.ts';
import type { Repository } from '../git/repository.ts';
import { mergeTrees } from '../git/staging/merge-trees.ts';
import { readRef } from '../git/owner-git.ts';
import { isBlob, treeOf, writeTree } from '../git/staging/staging.ts';
import { select, type SelectionError } from '../review/selection.ts';
import type { StoredTask } from '../store/tasks.ts';
import { subjectOf, userOf } from '../results/bring-out.ts';
import { captureChanges, type AgentResult } from '../results/capture.ts';
import { compareWithBase } from '../results/changes.ts';
import { chooseChanges, type Chosen, shownOf, mergeBase } from '../results/change-set.ts';
import { list, shortName } from '../results/move-files.ts';
import { repositoryAt } from '../run/project.ts';
import type { HostContext } from '../run/host-context.ts';

/** Which changes to take, and into which branch. */
export interface TreeRequest {
  /** Takes only changes of these paths, directories or patterns; if empty, all. */
  readonly paths: readonly string[];
  readonly risky: readonly string[];
  readonly riskyPatterns: readonly string[];
  /** A branch by its short name; by default the one that the task was started from. */
  readonly into: string | undefined;
  /** Exactly these shown changes, in place of paths. Choosing a file by its number counts as naming it, even if it can run code. */
  readonly chosen?: Chosen;
  /** Whole files of another task, merged on top of the first task's, into the same commit. */
  readonly besides?: { readonly stored: StoredTask; readonly chosen: Chosen };
  /** Creates the branch `into` at the task's base commit if it does not exist. */
  readonly create?: boolean;
}

/** The two sides of a merge; read before anything is locked. */
export interface MergeSides {
  readonly agent: AgentResult;
  readonly repository: Repository;
  readonly ref: string;
}

export interface MergedBranch extends MergeSides {
  /** The branch's current commit. */
  readonly from: string;
  /** The tree that the branch would have. */
  readonly tree: string;
  /** The tree of the task's changes that the branch would have: the base of the next merge. */
  readonly nextBase: string;
  /** The branch already has that tree. */
  readonly isThere: boolean;
  readonly take: readonly Change[];
  /** Changes that are left out or only partly taken. */
  readonly left: readonly Change[];
  /** Changes that are left out because they can run code and were not named. */
  readonly risky: readonly Change[];
  /** True if the branch would have everything that the task changed. */
  readonly whole: boolean;
  /** True if the branch does not exist yet. */
  readonly create: boolean;
  /** The agents whose work is merged. */
  readonly authors: readonly AgentResult['by'][];
}

export async function findSides(
  context: HostContext,
  stored: StoredTask,
  into: string | undefined,
): Promise<MergeSides> {
  const agent = await resultOf(context, stored);
  const repository = await repositoryOf(context, stored.task.project);
  return { agent, repository, ref: targetOf(stored, into) };
}

/** Throws on a conflict. */
export async function mergeIntoTree(
  context: HostContext,
  stored: StoredTask,
  request: TreeRequest,
  sides: MergeSides,
): Promise<MergedBranch> {
  const { agent, repository, ref } = sides;
  const { staging } = stored.paths;
  const there = await readRef(repository.commonDir, ref);
  const create = there === null && request.create === true;
  const from = create ? agent.base : there;
  if (from === null)
    throw new AgsError('path.not-found', `There is no branch ${shortName(ref)} in this repository.`, {
      hint: `Make it first: git branch ${shortName(ref)}`,
    });
  const chosen = await choose(context, stored, request);
  const all = chosen.left.length === 0;
  const base = await mergeBase(context, stored, { base: agent.base, repository, ref, tip: from });
  const [ours, theirs] = [await treeOf(staging, from), all ? agent.tree : await treeWith(staging, base, chosen.take)];
  const first = await mergeTrees(staging, { base, ours, theirs });
  if ('conflicts' in first) throw conflicts(stored, ref, first.conflicts);
  const besides = request.besides === undefined ? null : await chooseBesides(context, stored, request);
  const merged = besides === null ? first : await mergeTrees(staging, { ...besides.trees, ours: first.tree });
  if ('conflicts' in merged) throw conflicts(besides?.stored ?? stored, ref, merged.conflicts);
  // The branch may already have the rest, from an earlier merge or from the user.
  const full = all ? merged : await mergeTrees(staging, { base, ours: merged.tree, theirs: agent.tree });
  const whole = 'tree' in full && full.tree === merged.tree;
  const risky = chosen.left.filter((change) => change.lane !== 'inert');
  return {
    ...sides,
    from,
    tree: merged.tree,
    nextBase: theirs,
    isThere: merged.tree === ours,
    take: [...chosen.take, ...(besides?.take ?? [])],
    left: chosen.left,
    risky: whole ? [] : risky,
    whole,
    create,
    authors: besides === null ? [agent.by] : [agent.by, besides.by],
  };
}

/** Chooses the changes of the second task. Its files come from the user's repository, which has the branch of every task. */
async function chooseBesides(context: HostContext, first: StoredTask, request: TreeRequest) {
  const { besides } = request;
  if (besides === undefined) throw new Error('no second task');
  const { stored, chosen } = besides;
  const { staging } = first.paths;
  if (stored.task.id === first.task.id || stored.task.project !== first.task.project)
    throw new AgsError('usage.invalid', `${stored.task.name} is not another task of the same project.`);
  if (chosen.files.some(({ hunks }) => hunks !== undefined))
    throw new AgsError('usage.invalid', 'Files of a second task can only be taken whole.');
  const { base, by } = await resultOf(context, stored);
  const { take } = await choose(context, stored, { ...request, chosen });
  for (const { path, after } of take)
    if (after !== null && !(await isBlob(staging, after.oid)))
      throw new AgsError('path.not-found', `${path} of ${stored.task.name} is no longer in your repository.`, {
        hint: `Take it in the review of ${stored.task.name}.`,
      });
  const theirs = await treeWith(staging, base, take);
  return { stored, take, by, trees: { base: await treeOf(staging, base), theirs } };
}

async function resultOf(context: HostContext, stored: StoredTask): Promise<AgentResult> {
  const { task, run, live } = stored;
  if (task.kind !== 'agent')
    throw new AgsError('usage.invalid', `${task.name} is not an agent's task: it has no branch to merge.`, {
      hint: `Take its files: ags review ${task.name}`,
    });
  if (live && ['preparing', 'running', 'needs-you'].includes(run.state))
    throw new AgsError('task.busy', `${task.name} is still running.`, { hint: 'Merge it when it has ended.' });
  const { agent } = await captureChanges(context, stored, { withIgnored: false });
  if (agent === undefined) throw new Error('a capture of an agent without its result');
  return agent;
}

export async function repositoryOf(context: HostContext, project: string): Promise<Repository> {
  const repository = await repositoryAt(context, project);
  if (repository === null)
    throw new AgsError('project.unsuitable', `There is no git repository at ${project}.`, {
      hint: 'Run this in the repository that the task was started in.',
    });
  return repository;
}

export function targetOf({ task }: StoredTask, into: string | undefined): string {
  const ref = into === undefined ? (task.goal?.baseRef ?? null) : `refs/heads/${into.replace(/^refs\/heads\//, '')}`;
  if (ref !== null) return ref;
  throw new AgsError('usage.invalid', `${task.name} was started from a commit, not from a branch.`, {
    hint: `Name the branch to merge into: ags merge ${task.name} --into <branch>`,
  });
}

async function choose(
  context: HostContext,
  stored: StoredTask,
  request: TreeRequest,
): Promise<{ take: Change[]; left: Change[] }> {
  const capture = await captureChanges(context, stored, { withIgnored: false });
  const compared = await compareWithBase(context, stored, capture, request.riskyPatterns);
  if (request.chosen !== undefined) {
    const shown = await shownOf(stored, compared, capture.agent ?? null);
    const { take, left } = await chooseChanges(stored, shown, request.chosen);
    return { take: take.map(({ change }) => change), left };
  }
  const { changeSet } = compared;
  const { changes } = changeSet;
  const picked = select(changes, {
    accept: request.paths.map((path) => asDirectory(path, changes)),
    acceptAll: request.paths.length === 0,
    discard: [],
    discardAll: false,
    risky: request.risky,
  });
  const [error] = picked.errors;
  if (error !== undefined) throw selectionProblem(error, stored);
  return picked;
}

/** "src" means everything below it, unless a file has that name. */
export function asDirectory(path: string, changes: readonly Change[]): string {
  const exact = changes.some((change) => change.path === path || change.from === path);
  return !exact && changes.some((change) => change.path.startsWith(`${path}/`)) ? `${path}/` : path;
}

export function selectionProblem(error: SelectionError, { task }: StoredTask): AgsError {
  if (error.problem === 'risky')
    return new AgsError('path.risky', `${error.path} can run code on this machine or in CI.`, {
      hint: `Look at it (ags diff ${task.name} ${error.path}), then name it: --risky ${error.path}`,
    });
  if (error.problem === 'conflict')
    return new AgsError('project.changed', `${error.path} also changed on your side, in another way.`, {
      hint: `Merge both texts by hand: ags review ${task.name}`,
    });
  return new AgsError('path.not-found', `${error.path} is not among the changes of ${task.name}.`, {
    hint: `List them: ags diff ${task.name} --name-only`,
  });
}

async function treeWith(staging: string, base: string, changes: readonly Change[]): Promise<string> {
  const zero = '0'.repeat(base.length);
  const gone = changes.flatMap(({ path, from, after }) => (after === null ? [path] : from === undefined ? [] : [from]));
  return writeTree(
    staging,
    [
      ...gone.map((path) => ({ path, mode: null, oid: zero })),
      ...changes.flatMap(({ path, after }) => (after === null ? [] : [{ path, mode: after.mode, oid: after.oid }])),
    ],
    base,
  );
}

/** Writes one commit with that tree, by the user. */
export async function mergeCommit(
  context: HostContext,
  { task, run, paths }: StoredTask,
  message: string | undefined,
  repository: Repository,
  parts: { tree: string; parents: readonly string[]; authors: readonly AgentResult['by'][] },
): Promise<string> {
  const { authors, ...commit } = parts;
  const names = new Map(authors.map((one) => [one.email, one.name]));
  const goal = task.goal?.text.trim() ?? task.name;
  const subject = subjectOf(goal);
  const [first = '', ...rest] = goal.split('\n');
  const body = first.trim() === subject ? rest.join('\n').trim() : goal;
  const text = message ?? (body === '' ? subject : `${subject}\n\n${body}`);
  const who = signature(userOf(repository), context.now());
  const trailers = [
    ['Ags-Task', task.id],
    ['Ags-Run', `${task.id}/${run.number ?? 1}`],
    ...[...names.values()].map((name) => ['Ags-Agent', name] as const),
    ...[...names].map(([email, name]) => ['Co-authored-by', `${name} <${email}>`] as const),
  ] as const;
  return writeCommit(paths.staging, { ...commit, author: who, committer: who, message: withTrailers(text, trailers) });
}

function conflicts({ task }: StoredTask, ref: string, files: readonly string[]): AgsError {
  const many = files.length === 1 ? '1 file' : `${files.length} files`;
  return new AgsError(
    'project.changed',
    `Conflict: ${shortName(ref)} and ${task.name} both changed ${many}. Nothing was merged:\n${list(files)}`,
    {
      hint: `Let an agent resolve it: ags resolve ${task.name}\nTake the others: ags merge ${task.name} <paths>\nOr resolve it by hand: git merge ags/${task.name}`,
      details: { files },
    },
  );
}
