// merge/undo.ts: take a merge back.
// Invariant: nothing that came after the merge is lost. If the branch is still where the merge put it, it goes back; otherwise a new
// commit takes away what the merge brought, by a three-way merge that may find conflicts before anything has changed.
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { removeTree } from '../lib/files.ts';
import { signature, writeCommit } from '../git/commit-text.ts';
import type { Repository } from '../git/inspect.ts';
import { mergeTrees } from '../git/staging/merge-trees.ts';
import { readRef } from '../git/owner-git.ts';
import { createStaging, treeOf } from '../git/staging/staging.ts';
import { makePlace, mergePaths, readMerges, standing, type MergeRecord, type NumberedMerge } from '../store/merges.ts';
import { userOf } from '../results/bring-out.ts';
import { tellDiskTrouble } from '../run/disk-errors.ts';
import { repositoryOf } from './merge-tree.ts';
import { carryOut, lockMerges, planMove } from './move-branch.ts';
import { list, shortName } from '../results/move-files.ts';
import { repositoryAt } from '../run/project.ts';
import type { World } from '../run/host-context.ts';

export interface Undone {
  readonly task: string;
  readonly ref: string;
  readonly from: string;
  readonly to: string;
  /** A commit was added, because others came after the merge. */
  readonly reverted: boolean;
}

/** The last merge of this repository, or of this task. */
export function undoMerge(world: World, project: string, task: string | undefined): Promise<Undone> {
  return tellDiskTrouble(world, async () => {
    const repository = await repositoryOf(world, project);
    using lock = await lockMerges(world, repository.commonDir);
    const merge = lastMerge(readMerges(lock.paths), task);
    const staging = makePlace(lock.paths);
    try {
      createStaging(staging, repository.objectFormat, {
        bare: true,
        borrows: [join(repository.commonDir, 'objects')],
      });
      const { to, reverted, from } = await planUndo(world, repository, staging, merge);
      const record: MergeRecord = {
        version: 1,
        kind: 'undo',
        task: merge.task,
        repository: repository.commonDir,
        ref: merge.ref,
        from,
        to,
        at: world.now().toISOString(),
        whole: merge.whole,
        undoes: merge.number,
      };
      const why = `ags: undo the merge of ${merge.task}`;
      if (from !== to) await carryOut(await planMove({ world, repository, staging, record, why }), lock);
      return { task: merge.task, ref: merge.ref, from, to, reverted };
    } finally {
      removeTree(staging);
    }
  });
}

/** Whether there is a merge of this task that can be taken back. */
export async function hasMerge(world: World, project: string, task: string): Promise<boolean> {
  const repository = await repositoryAt(world, project).catch(() => null);
  if (repository === null) return false;
  return findMerge(readMerges(mergePaths(world.stateDir, repository.commonDir)), task) !== undefined;
}

function findMerge(merges: readonly NumberedMerge[], task: string | undefined): NumberedMerge | undefined {
  return standing(merges).findLast((one) => task === undefined || one.task === task);
}

function lastMerge(merges: readonly NumberedMerge[], task: string | undefined): NumberedMerge {
  const found = findMerge(merges, task);
  if (found !== undefined) return found;
  throw new AgsError(
    'task.not-found',
    task === undefined ? 'Nothing was merged in this repository by ags.' : `${task} was not merged, or not any more.`,
    { hint: 'What there is: ags list' },
  );
}

async function planUndo(
  world: World,
  repository: Repository,
  staging: string,
  merge: NumberedMerge,
): Promise<{ from: string; to: string; reverted: boolean }> {
  const now = await readRef(repository.commonDir, merge.ref);
  if (now === null)
    throw new AgsError('path.not-found', `The branch ${shortName(merge.ref)} is no longer there.`, {
      hint: `What it was before the merge: ${merge.from}`,
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
      `What the merge of ${merge.task} brought was changed again since; nothing was undone:\n${list(merged.conflicts)}`,
      { hint: `By hand: git revert ${merge.to}`, details: { files: merged.conflicts } },
    );
  if (merged.tree === ours) return { from: now, to: now, reverted: false };
  const who = signature(userOf(repository), world.now());
  const message = `Undo the merge of ${merge.task}\n\nThis takes back commit ${merge.to}.\n`;
  const to = await writeCommit(staging, {
    tree: merged.tree,
    parents: [now],
    author: who,
    committer: who,
    message,
  });
  return { from: now, to, reverted: true };
}
