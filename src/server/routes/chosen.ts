// server/routes/chosen.ts: turns the selection in a request body, of one task or two, into arguments for merge and checks.
import type { MergeTask } from '../../protocol/api/review.ts';
import type { StoredTask } from '../../store/tasks.ts';
import type { TreeRequest } from '../../merge/merge-tree.ts';
import { riskyPatterns } from '../../results/review.ts';
import type { Api } from './route.ts';

type Taking = Pick<(typeof MergeTask)['_output'], 'changes' | 'files' | 'besides' | 'into' | 'create'>;

/** Runs `act` while no other request acts on any of the named tasks. */
export function inTurns<T>(api: Api, task: string, { besides }: Taking, act: () => Promise<T>): Promise<T> {
  // Always in the same order: two requests that name the same tasks must not wait for each other.
  const [first = '', second] = [...new Set([task, besides?.task ?? task])].sort();
  return api.inTurn(first, second === undefined ? act : () => api.inTurn(second, act));
}

export async function treeRequest(api: Api, stored: StoredTask, body: Taking): Promise<TreeRequest> {
  const { changes, files, besides, into, create } = body;
  return {
    paths: [],
    risky: [],
    riskyPatterns: await riskyPatterns(api.context, stored.task.project),
    into: into ?? undefined,
    create,
    chosen: { changes, files },
    ...(besides === null ? {} : { besides: { stored: await api.task(besides.task, { work: true }), chosen: besides } }),
  };
}
