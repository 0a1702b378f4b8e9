// agent-run/goal-order.ts: the order in which goals become tasks, if some begin after others. Pure.
// Invariant: every task that a goal names with `after` exists or comes before it; names and cycles are refused before anything starts.
import { AgsError } from '../protocol/errors.ts';
import { suggest } from '../config/file/suggest.ts';

export interface OrderedGoal {
  readonly name: string | null;
  /** The name of another goal, or of a task that exists. */
  readonly after?: string | undefined;
  /** Where the goal stands, for errors: "Line 7". */
  readonly at?: string | undefined;
}

/** The goals in an order in which each comes after the one it names, otherwise as given. `exists`: is there such a task? */
export function orderGoals<G extends OrderedGoal>(goals: readonly G[], exists: (name: string) => boolean): G[] {
  const named = new Map<string, G>();
  for (const goal of goals) {
    if (goal.name === null) continue;
    if (named.has(goal.name)) throw problem(goal, `two goals are called ${goal.name}.`, 'Give each its own name.');
    named.set(goal.name, goal);
  }
  const ordered = new Set<G>();
  for (const goal of goals) {
    // From the goal back to the first that waits for none of these goals.
    const chain: G[] = [];
    for (let next: G | undefined = goal; next !== undefined && !ordered.has(next);) {
      if (chain.includes(next)) throw problem(next, `goals wait for each other: ${circle(chain, next)}.`);
      chain.unshift(next);
      const after: string | undefined = next.after;
      if (after !== undefined && !named.has(after) && !exists(after)) throw unknown(next, after, [...named.keys()]);
      next = after === undefined ? undefined : named.get(after);
    }
    for (const one of chain) ordered.add(one);
  }
  return [...ordered];
}

function circle<G extends OrderedGoal>(chain: readonly G[], first: G): string {
  const names = chain.slice(0, chain.indexOf(first) + 1).map(({ name }) => name);
  return [...names.toReversed(), first.name].join(' after ');
}

function unknown(goal: OrderedGoal, after: string, names: readonly string[]): AgsError {
  const near = suggest(after, names);
  return problem(
    goal,
    `there is no goal or task called ${after}.`,
    near === undefined
      ? 'Name a goal of this file with (name: <name>), or a task of: ags list'
      : `Did you mean: ${near}`,
  );
}

function problem({ at }: OrderedGoal, text: string, hint?: string): AgsError {
  const sentence = at === undefined ? `${text[0]?.toUpperCase()}${text.slice(1)}` : `${at}: ${text}`;
  return new AgsError('usage.invalid', sentence, { hint });
}
