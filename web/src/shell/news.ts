// web/src/shell/news.ts: the tasks that have newly entered a state that needs attention.
import type { ApiTask } from '../../../src/protocol/api/api.ts';

/**
 * `before` has the state of every task that was known; null: this is the first list, and nothing in it is news. A task can ask its
 * question before the page first hears of it.
 */
export function tasksToAnnounce(
  before: ReadonlyMap<string, string> | null,
  tasks: readonly ApiTask[],
): readonly ApiTask[] {
  if (before === null) return [];
  return tasks.filter(
    ({ id, group, state, kind }) =>
      kind === 'agent' && before.get(id) !== state && (group === 'needs-you' || group === 'look'),
  );
}
