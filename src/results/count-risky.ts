// results/count-risky.ts: counts the changed files that can run code, so that `ags list` can show the number before a review.
import type { StoredTask } from '../store/tasks.ts';
import { readCapture } from './capture.ts';
import { compareWithBase } from './changes.ts';
import { riskyPatterns } from './risky-patterns.ts';
import type { HostContext } from '../run/host-context.ts';

/** A review reads every file; the end of a run does not wait for more files than this. */
const MOST_FILES = 2000;

/** Returns null if there are too many files to count. */
export async function countRisky(context: HostContext, stored: StoredTask, files: number): Promise<number | null> {
  const capture = files > MOST_FILES ? null : readCapture(stored);
  if (capture === null) return null;
  const patterns = await riskyPatterns(context, stored.task.project);
  const { changeSet } = await compareWithBase(context, stored, capture, patterns);
  return changeSet.changes.filter(({ lane }) => lane !== 'inert').length;
}
