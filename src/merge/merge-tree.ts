// merge/merge-tree.ts: what a branch would be after a merge, as a tree: for the merge itself, and for the checks before it.
// Invariant: computed from trees in our own staging, against the commit the task started from or what the branch has of it already
// (taken.ts); files that can run code are taken only if they were named; nothing of the user's is changed.
import { AgsError } from '../protocol/errors.ts';
import type { Change } from '../protocol/changes.ts';
import { signature, withTrailers, writeCommit } from '../git/commit-text.ts';
import type { Repository } from '../git/inspect.ts';
import { mergeTrees } from '../git/staging/merge-trees.ts';
import { readRef } from '../git/owner-git.ts';
import { isBlob, treeOf, writeTree } from '../git/staging/staging.ts';
import { select, type SelectionError } from '../review/selection.ts';
import type { StoredTask } from '../store/tasks.ts';
import { subjectOf, userOf } from '../results/bring-out.ts';
import { captureChanges, type AgentResult } from '../results/capture.ts';
import { compareWithBase } from '../results/changes.ts';
import { chooseChanges, type Chosen } from '../results/chosen-changes.ts';
import { list, shortName } from '../results/move-files.ts';
import { repositoryAt } from '../run/project.ts';
import { shownOf } from '../results/change-set.ts';
import { mergeBase } from '../results/merge-base.ts';
import type { World } from '../run/host-context.ts';

/** What is to be taken, and where to. */
export interface TreeRequest {
  /** Of all changes, those of these paths, directories or patterns; none: all. */
  readonly paths: readonly string[];
  readonly risky: readonly string[];
  readonly riskyPatterns: readonly string[];
  /** A branch by its short name; undefined: the one that the task was started from. */
  readonly into: string | undefined;
  /** Exactly these of what was shown, in place of paths; who names a file that can run code by its number has looked at it. */
  readonly chosen?: Chosen;
  /** Whole files of another task, put onto what the first gives, into the same commit. */
  readonly besides?: { readonly stored: StoredTask; readonly chosen: Chosen };
  /** Make the branch of `into`, where the task began, if it is not there. */
  readonly create?: boolean;
}

/** What it is made of; read before anything is locked. */
export interface MergeSides {
  readonly agent: AgentResult;
  readonly repository: Repository;
  readonly ref: string;
}

export interface MergedBranch extends MergeSides {
  /** The branch as it is. */
  readonly from: string;
  /** The tree that it would have. */
  readonly tree: string;
  /** What it would have of the task by then. */
  readonly taken: string;
  /** It has that tree already. */
  readonly isThere: boolean;
  readonly take: readonly Change[];
  /** Left out, or taken in part. */
  readonly left: readonly Change[];
  /** Left out because they can run code and were not named. */
  readonly risky: readonly Change[];
  /** Everything that the task changed is on the branch afterwards. */
  readonly whole: boolean;
  /** The branch is not there yet. */
  readonly create: boolean;
  /** Whose work it is. */
  readonly authors: readonly AgentResult['by'][];
}

export async function findSides(world: World, stored: StoredTask, into: string | undefined): Promise<MergeSides> {
  const agent = await resultOf(world, stored);
  const repository = await repositoryOf(world, stored.task.project);
  return { agent, repository, ref: targetOf(stored, into) };
}

/** A conflict is found here, and thrown. */
export async function mergeIntoTree(
  world: World,
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
  const chosen = await choose(world, stored, request);
  const all = chosen.left.length === 0;
  const base = await mergeBase(world, stored, { base: agent.base, repository, ref, tip: from });
  const [ours, theirs] = [await treeOf(staging, from), all ? agent.tree : await treeWith(staging, base, chosen.take)];
  const first = await mergeTrees(staging, { base, ours, theirs });
  if ('conflicts' in first) throw conflicts(stored, ref, first.conflicts);
  const besides = request.besides === undefined ? null : await chooseBesides(world, stored, request);
  const merged = besides === null ? first : await mergeTrees(staging, { ...besides.trees, ours: first.tree });
  if ('conflicts' in merged) throw conflicts(besides?.stored ?? stored, ref, merged.conflicts);
  // What was left out may be there already, from an earlier merge or by the user's own hand.
  const full = all ? merged : await mergeTrees(staging, { base, ours: merged.tree, theirs: agent.tree });
  const whole = 'tree' in full && full.tree === merged.tree;
  const risky = chosen.left.filter((change) => change.lane !== 'inert');
  return {
    ...sides,
    from,
    tree: merged.tree,
    taken: theirs,
    isThere: merged.tree === ours,
    take: [...chosen.take, ...(besides?.take ?? [])],
    left: chosen.left,
    risky: whole ? [] : risky,
    whole,
    create,
    authors: besides === null ? [agent.by] : [agent.by, besides.by],
  };
}

/** What is taken of the second task. Its files come out of the user's repository, which has the branch of every task. */
async function chooseBesides(world: World, first: StoredTask, request: TreeRequest) {
  const { besides } = request;
  if (besides === undefined) throw new Error('no second task');
  const { stored, chosen } = besides;
  const { staging } = first.paths;
  if (stored.task.id === first.task.id || stored.task.project !== first.task.project)
    throw new AgsError('usage.invalid', `${stored.task.name} is not another task of the same project.`);
  if (chosen.files.some(({ hunks }) => hunks !== undefined))
    throw new AgsError('usage.invalid', 'Of a second task, files are taken whole.');
  const { base, by } = await resultOf(world, stored);
  const { take } = await choose(world, stored, { ...request, chosen });
  for (const { path, after } of take)
    if (after !== null && !(await isBlob(staging, after.oid)))
      throw new AgsError('path.not-found', `${path} of ${stored.task.name} is not in your repository any more.`, {
        hint: `Take it in the review of ${stored.task.name}.`,
      });
  const theirs = await treeWith(staging, base, take);
  return { stored, take, by, trees: { base: await treeOf(staging, base), theirs } };
}

async function resultOf(world: World, stored: StoredTask): Promise<AgentResult> {
  const { task, run, live } = stored;
  if (task.kind !== 'agent')
    throw new AgsError('usage.invalid', `${task.name} is not the task of an agent: it has no branch to merge.`, {
      hint: `Take its files: ags review ${task.name}`,
    });
  if (live && ['preparing', 'running', 'needs-you'].includes(run.state))
    throw new AgsError('task.busy', `${task.name} is still running.`, { hint: 'Merge it when it has ended.' });
  const { agent } = await captureChanges(world, stored, { withIgnored: false });
  if (agent === undefined) throw new Error('a capture of an agent without its result');
  return agent;
}

export async function repositoryOf(world: World, project: string): Promise<Repository> {
  const repository = await repositoryAt(world, project);
  if (repository === null)
    throw new AgsError('project.unsuitable', `There is no git repository at ${project}.`, {
      hint: 'Go into the one that the task was started in.',
    });
  return repository;
}

export function targetOf({ task }: StoredTask, into: string | undefined): string {
  const ref = into === undefined ? (task.goal?.baseRef ?? null) : `refs/heads/${into.replace(/^refs\/heads\//, '')}`;
  if (ref !== null) return ref;
  throw new AgsError('usage.invalid', `${task.name} was started from a commit, not from a branch.`, {
    hint: `Say which one it is to be merged into: ags merge ${task.name} --into <branch>`,
  });
}

async function choose(
  world: World,
  stored: StoredTask,
  request: TreeRequest,
): Promise<{ take: Change[]; left: Change[] }> {
  const capture = await captureChanges(world, stored, { withIgnored: false });
  const compared = await compareWithBase(world, stored, capture, request.riskyPatterns);
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

/** "src" means what is below it, unless a file is called so. */
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
      hint: `Put both into one text: ags review ${task.name}`,
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

/** One commit with that tree, by the user. */
export async function mergeCommit(
  world: World,
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
  const who = signature(userOf(repository), world.now());
  const trailers = [
    ['Ags-Task', task.id],
    ['Ags-Run', `${task.id}/${run.number ?? 1}`],
    ...[...names.values()].map((name) => ['Ags-Agent', name] as const),
    ...[...names].map(([email, name]) => ['Co-authored-by', `${name} <${email}>`] as const),
  ] as const;
  return writeCommit(paths.staging, { ...commit, author: who, committer: who, message: withTrailers(text, trailers) });
}

function conflicts({ task }: StoredTask, ref: string, files: readonly string[]): AgsError {
  const many = files.length === 1 ? 'One file' : `${files.length} files`;
  return new AgsError(
    'project.changed',
    `${many} changed in other ways on ${shortName(ref)} and in ${task.name}; nothing was merged:\n${list(files)}`,
    {
      hint: `Let an agent resolve it: ags resolve ${task.name}\nTake the others: ags merge ${task.name} <paths>\nOr resolve it by hand: git merge ags/${task.name}`,
      details: { files },
    },
  );
}
