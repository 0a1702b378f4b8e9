// tasks/merge.ts: put what an agent did onto a branch of the user's.
// Invariant: computed from trees in our own staging, against the commit the task started from; files that can run code are taken only if
// they were named; a conflict is found before anything has changed.
import { AgsError } from '../protocol/errors.ts';
import type { Change } from '../protocol/changes.ts';
import { signature, withTrailers, writeCommit } from '../git/commit-text.ts';
import type { Repository } from '../git/inspect.ts';
import { mergeTrees } from '../git/merge-trees.ts';
import { moveRef, readRef } from '../git/owner-git.ts';
import { treeOf, writeTree } from '../git/staging.ts';
import { select, type SelectionError } from '../review/selection.ts';
import type { StoredTask } from '../store/tasks.ts';
import { subjectOf, userOf } from './bring-out.ts';
import { captureChanges, type AgentResult } from './capture.ts';
import { compareWithBase } from './changes.ts';
import { chooseChanges, type Chosen } from './chosen.ts';
import { carryOut, lockMerges, planMove, type PlannedMove } from './move-branch.ts';
import { list, shortName } from './move-files.ts';
import { tellDiskTrouble } from './disk-trouble.ts';
import { settleState } from './settle-merge.ts';
import { repositoryAt } from './project.ts';
import { shownOf } from './shown-changes.ts';
import type { World } from './world.ts';

export interface MergeRequest {
  /** Of all changes, those of these paths, directories or patterns; none: all. */
  readonly paths: readonly string[];
  readonly risky: readonly string[];
  readonly riskyPatterns: readonly string[];
  /** A branch by its short name; undefined: the one that the task was started from. */
  readonly into: string | undefined;
  readonly keepCommits: boolean;
  readonly message: string | undefined;
  /** Exactly these of what was shown, in place of paths; who names a file that can run code by its number has looked at it. */
  readonly chosen?: Chosen;
  /** Make the branch of `into`, where the task began, if it is not there. */
  readonly create?: boolean;
}

export interface MergePlan {
  readonly ref: string;
  readonly from: string;
  /** null: everything is there already. */
  readonly to: string | null;
  readonly take: readonly Change[];
  /** Left out, or taken in part. */
  readonly left: readonly Change[];
  /** Left out because they can run code and were not named. */
  readonly risky: readonly Change[];
  /** Everything that the task changed is on the branch afterwards. */
  readonly whole: boolean;
}

export interface Merge extends Disposable {
  readonly plan: MergePlan;
  carryOut(): Promise<void>;
}

/** Looks at everything and holds the repository's lock; nothing is changed before `carryOut`. */
export function openMerge(world: World, stored: StoredTask, request: MergeRequest): Promise<Merge> {
  return tellDiskTrouble(world, () => open(world, stored, request));
}

async function open(world: World, stored: StoredTask, request: MergeRequest): Promise<Merge> {
  const agent = await resultOf(world, stored);
  const repository = await repositoryOf(world, stored.task.project);
  const ref = targetOf(stored, request.into);
  const lock = await lockMerges(world, repository.commonDir);
  try {
    const { plan, move, create } = await planMerge(world, stored, request, { agent, repository, ref });
    return {
      plan,
      carryOut: () =>
        tellDiskTrouble(world, () =>
          move === null
            ? settleState(world, stored.task.id, 'merge', plan.whole)
            : create
              ? carryOutOnNew(repository, plan, () => carryOut(move, lock))
              : carryOut(move, lock),
        ),
      [Symbol.dispose]: () => lock[Symbol.dispose](),
    };
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

/** A branch that nothing came to is not left behind. */
async function carryOutOnNew(
  { commonDir }: Repository,
  { ref, from }: MergePlan,
  act: () => Promise<void>,
): Promise<void> {
  const made = await moveRef(commonDir, ref, null, from, 'ags: a new branch');
  if (made !== 'moved')
    throw new AgsError('project.changed', `There is a branch ${shortName(ref)} by now.`, {
      hint: 'Choose another name.',
    });
  try {
    await act();
  } catch (error) {
    await moveRef(commonDir, ref, from, null, 'ags: nothing came to it');
    throw error;
  }
}

export async function resultOf(world: World, stored: StoredTask): Promise<AgentResult> {
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
  throw new AgsError('usage.invalid', `${task.name} was started without a branch checked out.`, {
    hint: `Say which one it is to be merged into: ags merge ${task.name} --into <branch>`,
  });
}

async function planMerge(
  world: World,
  stored: StoredTask,
  request: MergeRequest,
  at: { agent: AgentResult; repository: Repository; ref: string },
): Promise<{ plan: MergePlan; move: PlannedMove | null; create: boolean }> {
  const { agent, repository, ref } = at;
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
  if (request.keepCommits && !all)
    throw new AgsError('usage.invalid', 'The commits of the agent can only be kept if everything in them is taken.', {
      hint: `Name the files that can run code, or leave the commits out: --squash\n${list(chosen.left.map(({ path }) => path))}`,
    });
  const [base, ours, theirs] = [
    await treeOf(staging, agent.base),
    await treeOf(staging, from),
    all ? agent.tree : await treeWith(staging, agent.base, chosen.take),
  ];
  const merged = await mergeTrees(staging, { base, ours, theirs });
  if ('conflicts' in merged) throw conflicts(stored, ref, merged.conflicts);
  // What was left out may be there already, from an earlier merge or by the user's own hand.
  const full = all ? merged : await mergeTrees(staging, { base, ours: merged.tree, theirs: agent.tree });
  const whole = 'tree' in full && full.tree === merged.tree;
  const risky = chosen.left.filter((change) => change.lane !== 'inert');
  const plan = { ref, from, take: chosen.take, left: chosen.left, risky: whole ? [] : risky, whole };
  if (merged.tree === ours) return { plan: { ...plan, to: null }, move: null, create };
  const to =
    request.keepCommits && from === agent.base
      ? agent.commit
      : await mergeCommit(world, stored, request, repository, {
          tree: merged.tree,
          parents: request.keepCommits ? [from, agent.commit] : [from],
          by: agent.by,
        });
  const record = {
    version: 1,
    kind: 'merge',
    task: stored.task.id,
    repository: repository.commonDir,
    ref,
    from,
    to,
    at: world.now().toISOString(),
    whole,
  } as const;
  const why = `ags: merge ${stored.task.name}`;
  const move = await planMove({ world, repository, staging, record, why });
  return { plan: { ...plan, to }, move, create };
}

async function choose(
  world: World,
  stored: StoredTask,
  request: MergeRequest,
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

async function mergeCommit(
  world: World,
  { task, run, paths }: StoredTask,
  request: MergeRequest,
  repository: Repository,
  parts: { tree: string; parents: readonly string[]; by: AgentResult['by'] },
): Promise<string> {
  const { by, ...commit } = parts;
  const goal = task.goal?.text.trim() ?? task.name;
  const subject = subjectOf(goal);
  const [first = '', ...rest] = goal.split('\n');
  const body = first.trim() === subject ? rest.join('\n').trim() : goal;
  const text = request.message ?? (body === '' ? subject : `${subject}\n\n${body}`);
  const who = signature(userOf(repository), world.now());
  const trailers = [
    ['Ags-Task', task.id],
    ['Ags-Run', `${task.id}/${run.number ?? 1}`],
    ['Ags-Agent', by.name],
    ['Co-authored-by', `${by.name} <${by.email}>`],
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
