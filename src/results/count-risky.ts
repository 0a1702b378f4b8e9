// results/count-risky.ts: how many of the files that an agent changed can run code, so that a list can say it before anybody has looked.
import type { StoredTask } from '../store/tasks.ts';
import { readCapture } from './capture.ts';
import { compareWithBase } from './changes.ts';
import { riskyPatterns } from './risky-patterns.ts';
import type { World } from '../run/host-context.ts';

/** A review reads them all; the end of a run does not wait for that where there are more. */
const MOST_FILES = 2000;

/** null: not looked at. */
export async function countRisky(world: World, stored: StoredTask, files: number): Promise<number | null> {
  const capture = files > MOST_FILES ? null : readCapture(stored);
  if (capture === null) return null;
  const patterns = await riskyPatterns(world, stored.task.project);
  const { changeSet } = await compareWithBase(world, stored, capture, patterns);
  return changeSet.changes.filter(({ lane }) => lane !== 'inert').length;
}
