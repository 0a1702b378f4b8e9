// queries/standing-merges.ts: which merges of a task stand, from its events.
import type { EventLine } from '../protocol/event.ts';
import type { RunFile, TaskFile } from '../protocol/task.ts';

export interface StandingMerge {
  readonly branch: string;
  readonly commit: string;
  /** How many of the task's changed files it took, of how many; null: an older event does not say. */
  readonly files: number | null;
  readonly of: number | null;
  readonly at: string;
}

/** Call for each event in order. An undo takes back the last merge. */
export function followMerges(merges: StandingMerge[], event: EventLine): void {
  if (event.type === 'merge.undone') merges.pop();
  if (event.type !== 'merge.done') return;
  const { ref, commit, files = null, of = null, at } = event;
  merges.push({ branch: ref.replace('refs/heads/', ''), commit, files, of, at });
}

/** The last one that stands. An imported task also has the events of merges on the other machine. */
export function lastStanding(
  merges: readonly StandingMerge[],
  stored: { readonly task: Pick<TaskFile, 'imported'>; readonly run: Pick<RunFile, 'state'> } | null,
): Omit<StandingMerge, 'at'> | null {
  const last = merges.at(-1);
  const since = stored?.task.imported === undefined ? 0 : Date.parse(stored.task.imported.at);
  if (last === undefined || Date.parse(last.at) < since) return null;
  const { branch, commit, files, of } = last;
  // After several merges of some files each, the branch has all of them.
  return { branch, commit, files: stored?.run.state === 'merged' ? of : files, of };
}
