// server/routes/chosen.ts: what a body chose of one task or two, as the verbs take it.
import type { MergeTask } from '../../protocol/api/review.ts';
import type { StoredTask } from '../../store/tasks.ts';
import type { TreeRequest } from '../../merge/merge-tree.ts';
import { riskyPatterns } from '../../results/risky-patterns.ts';
import type { Desk } from './route.ts';

type Taking = Pick<(typeof MergeTask)['_output'], 'changes' | 'files' | 'besides' | 'into' | 'create'>;

/** When it is the turn of every task that is named. */
export function inTurns<T>(desk: Desk, task: string, { besides }: Taking, act: () => Promise<T>): Promise<T> {
  // Always in one order: two requests that name the same tasks must not wait for each other.
  const [first = '', second] = [...new Set([task, besides?.task ?? task])].sort();
  return desk.inTurn(first, second === undefined ? act : () => desk.inTurn(second, act));
}

export async function treeRequest(desk: Desk, stored: StoredTask, body: Taking): Promise<TreeRequest> {
  const { changes, files, besides, into, create } = body;
  return {
    paths: [],
    risky: [],
    riskyPatterns: await riskyPatterns(desk.world, stored.task.project),
    into: into ?? undefined,
    create,
    chosen: { changes, files },
    ...(besides === null
      ? {}
      : { besides: { stored: await desk.task(besides.task, { work: true }), chosen: besides } }),
  };
}
