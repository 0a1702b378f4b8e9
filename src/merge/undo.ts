// merge/undo.ts: undoes a merge.
// Invariant: nothing that came after the merge is lost. If the branch is still where the merge put it, it moves back. Otherwise a new
// commit reverts the merge by a three-way merge, which finds conflicts before anything changes.
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { removeTree } from '../lib/files.ts';
import { signature, writeCommit } from '../git/commit-text.ts';
import type { Repository } from '../git/repository.ts';
import { mergeTrees } from '../git/staging/merge-trees.ts';
import { moveRef, readRef } from '../git/owner-git.ts';
import { createStaging, treeOf } from '../git/staging/staging.ts';
import { makePlace, mergePaths, readMerges, standing, type MergeRecord, type NumberedMerge } from '../store/merges.ts';
import { userOf } from '../results/bring-out.ts';
import { explainDiskErrors } from '../run/disk-errors.ts';
import { repositoryOf } from './merge-tree.ts';
import { carryOut, lockMerges, planMove } from './move-branch.ts';
import { list, shortName } from '../results/move-files.ts';
import { repositoryAt } from '../run/project.ts';
import type { HostContext } from '../run/host-context.ts';

export interface Undone {
  readonly task: string;
  readonly ref: string;
  readonly from: string;
  readonly to: string;
  /** True if a commit was added, because others came after the merge. */
  readonly reverted: boolean;
  /** The branch with the work. `restored`: it was gone with its task, and is there again. */
  readonly branch: string;
  readonly restored: boolean;
}

/** Undoes the last merge in this repository, or the last one of this task. */
export function undoMerge(context: HostContext, project: string, task: string | undefined): Promise<Undone> {
  return explainDiskErrors(context, async () => {
    const repository = await repositoryOf(context, project);
    using lock = await lockMerges(context, repository.commonDir);
    const merge = lastMerge(readMerges(lock.paths), task);
    const staging = makePlace(lock.paths);
    try {
      createStaging(staging, repository.objectFormat, {
        bare: true,
        borrows: [join(repository.commonDir, 'objects')],
      });
      const { to, reverted, from } = await planUndo(context, repository, staging, merge);
      const branch = `ags/${merge.task}`;
      // Without a branch, the work would only be in the reflog afterwards.
      const isGone = (await readRef(repository.commonDir, `refs/heads/${branch}`)) === null;
      if (isGone) await moveRef(repository.commonDir, `refs/heads/${branch}`, null, merge.to, 'ags: an undone merge');
      const record: MergeRecord = {
        version: 1,
        kind: 'undo',
        task: merge.task,
        repository: repository.commonDir,
        ref: merge.ref,
        from,
        to,
        at: context.now().toISOString(),
        whole: merge.whole,
        undoes: merge.number,
      };
      const why = `ags: undo the merge of ${merge.task}`;
      if (from !== to) await carryOut(await planMove({ context, repository, staging, record, why }), lock);
      return { task: merge.task, ref: merge.ref, from, to, reverted, branch, restored: isGone };
    } finally {
      removeTree(staging);
    }
  });
}

/** True if there is a merge of this task that can be undone. */
export async function hasMerge(context: HostContext, project: string, task: string): Promise<boolean> {
  const repository = await repositoryAt(context, project).catch(() => null);
  if (repository === null) return false;
  return findMerge(readMerges(mergePaths(context.stateDir, repository.commonDir)), task) !== undefined;
}

function findMerge(merges: readonly NumberedMerge[], task: string | undefined): NumberedMerge | undefined {
  return standing(merges).findLast((one) => task === undefined || one.task === task);
}

function lastMerge(merges: readonly NumberedMerge[], task: string | undefined): NumberedMerge {
  const found = findMerge(merges, task);
  if (found !== undefined) return found;
  throw new AgsError(
    'task.not-found',
    task === undefined ? 'There is no merge to undo in this repository.' : `${task} is not merged.`,
    { hint: 'List tasks: ags list' },
  );
}

async function planUndo(
  context: HostContext,
  repository: Repository,
  staging: string,
  merge: NumberedMerge,
): Promise<{ from: string; to: string; reverted: boolean }> {
  const now = await readRef(repository.commonDir, merge.ref);
  if (now === null)
    throw new AgsError('path.not-found', `The branch ${shortName(merge.ref)} no longer exists.`, {
      hint: `Its commit before the merge: ${merge.from}`,
    });
  if (now === merge.to) return { from: now, to: merge.from, reverted: false };
  const [base, ours, theirs] = [
    await treeOf(staging, merge.to),
    await treeOf(staging, now),
    await treeOf(staging, merge.from),
  ];
  const merged = await mergeTrees(staging, { base, ours, theirs });
  if ('conflicts' in merged)
    throw new AgsError(
      'project.changed',
      `Conflict: later commits changed the same lines as the merge of ${merge.task}. Nothing was undone:\n${list(merged.conflicts)}`,
      { hint: `Undo it by hand: git revert ${merge.to}`, details: { files: merged.conflicts } },
    );
  if (merged.tree === ours) return { from: now, to: now, reverted: false };
  const who = signature(userOf(repository), context.now());
  const message = `Undo the merge of ${merge.task}\n\nThis reverts commit ${merge.to}.\n`;
  const to = await writeCommit(staging, {
    tree: merged.tree,
    parents: [now],
    author: who,
    committer: who,
    message,
  });
  return { from: now, to, reverted: true };
}
