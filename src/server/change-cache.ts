// server/change-cache.ts: the last sets of changes that the server showed, so that requests for their files find them.
// Invariant: a set never changes; its ID is derived from its content.
import type { ShownChanges } from '../results/change-set.ts';

export interface ChangeCache {
  keep(task: string, shown: ShownChanges): void;
  find(task: string, id: string): ShownChanges | undefined;
}

const MOST = 16;

export function createChangeCache(): ChangeCache {
  const kept = new Map<string, ShownChanges>();
  const keyOf = (task: string, id: string): string => `${task} ${id}`;
  return {
    keep(task, shown) {
      kept.delete(keyOf(task, shown.id));
      kept.set(keyOf(task, shown.id), shown);
      if (kept.size > MOST) kept.delete([...kept.keys()][0] ?? '');
    },
    find: (task, id) => kept.get(keyOf(task, id)),
  };
}
