// config/tasks.ts: merges the defaults for agents; flags of `ags start` override them. Pure.
import { parseDuration } from '../lib/units.ts';
import type { Budget, TaskDefaults } from './effective.ts';
import { originOf, type Layer } from './file/layer.ts';

type Last = <T>(key: string, builtIn: T, pick: (values: Layer['values']) => T | undefined) => T;

export function mergeTasks(layers: readonly Layer[], last: Last): TaskDefaults {
  const time = last<string | null>('tasks.time', null, (v) => v.tasks?.time);
  const cost = last<number | null>('tasks.cost', null, (v) => v.tasks?.cost);
  return {
    agent: last<string | null>('tasks.agent', null, (v) => v.tasks?.agent),
    model: last<string | null>('tasks.model', null, (v) => v.tasks?.model),
    parallel: last<number | null>('tasks.parallel', null, (v) => v.tasks?.parallel),
    seconds: time === null ? null : (parseDuration(time) ?? null),
    costMicros: cost === null ? null : Math.round(cost * 1e6),
    tokens: last<number | null>('tasks.tokens', null, (v) => v.tasks?.tokens),
    turns: last<number | null>('tasks.turns', null, (v) => v.tasks?.turns),
    budgets: layers.flatMap(readBudget),
  };
}

/** A project's budget stands beside the user's, so that it can only restrict. */
function readBudget(layer: Layer): Budget[] {
  const [amount = '', per] = layer.values.tasks?.budget?.split('/') ?? [];
  if (per !== 'day' && per !== 'month') return [];
  const of = layer.kind === 'project' ? 'project' : 'user';
  return [{ costMicros: Math.round(Number(amount) * 1e6), per, of, origin: originOf(layer, 'tasks.budget') }];
}

/** Default number of agents that run at once. They mostly wait for their models. */
export function usualParallel(cores: number): number {
  return Math.max(2, Math.min(8, cores));
}
