// queries/search.ts: finds tasks by words in their names and goals, then in their event logs.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { taskPaths } from '../store/layout.ts';
import type { HostContext } from '../run/host-context.ts';

/** Returns the IDs of tasks that contain all words. Searches only the end of each log, within a byte budget, to stay fast. */
export function searchTasks(
  context: HostContext,
  tasks: readonly { readonly id: string; readonly title: string; readonly agent: string | null }[],
  query: string,
): Set<string> {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
    .slice(0, 10);
  let budget = BUDGET_BYTES;
  return new Set(
    tasks
      .filter((task) => {
        const known = `${task.id} ${task.title} ${task.agent ?? ''}`.toLowerCase();
        if (words.every((word) => known.includes(word))) return true;
        if (budget <= 0) return false;
        const log = endOf(taskPaths(context.stateDir, task.id).events, Math.min(budget, TASK_BYTES));
        budget -= log.length;
        const text = `${known} ${log.toLowerCase()}`;
        return words.every((word) => text.includes(word));
      })
      .map(({ id }) => id),
  );
}

const TASK_BYTES = 2 ** 20;
const BUDGET_BYTES = 128 * 2 ** 20;

function endOf(file: string, bytes: number): string {
  try {
    const fd = openSync(file, 'r');
    try {
      const { size } = fstatSync(fd);
      const piece = Buffer.alloc(Math.min(size, bytes));
      return piece.toString('utf8', 0, readSync(fd, piece, 0, piece.length, size - piece.length));
    } finally {
      closeSync(fd);
    }
  } catch {
    // The task was just removed, or has no log yet.
    return '';
  }
}
