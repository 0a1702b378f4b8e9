// merge/both-sides.ts: shows what the branch and the task each changed in one file since the task began, to judge a conflict.
import { AgsError } from '../protocol/errors.ts';
import { readRef } from '../git/owner-git.ts';
import { listTree } from '../git/staging/staging.ts';
import type { StoredTask } from '../store/tasks.ts';
import { repositoryOf, targetOf } from './merge-tree.ts';
import { shortName } from '../results/move-files.ts';
import { readFileText, type ShownFile } from '../results/change-set.ts';
import type { HostContext } from '../run/host-context.ts';

export async function bothSides(
  context: HostContext,
  stored: StoredTask,
  { before, after, change }: ShownFile,
  into: string | undefined,
  maxBytes: number,
): Promise<{ branch: string; yours: string; theirs: string }> {
  const ref = targetOf(stored, into);
  const { commonDir } = await repositoryOf(context, stored.task.project);
  const tip = await readRef(commonDir, ref);
  if (tip === null) throw new AgsError('path.not-found', `There is no branch ${shortName(ref)} in this repository.`);
  const path = change.from ?? change.path;
  const there = (await listTree(stored.paths.staging, tip, [path])).find((entry) => entry.path === path)?.oid ?? null;
  const diff = async (now: string | null): Promise<string> =>
    (await readFileText(stored, { before, after: now }, maxBytes)).diff.toString('utf8');
  return { branch: shortName(ref), yours: await diff(there), theirs: await diff(after) };
}
