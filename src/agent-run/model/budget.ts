// agent-run/model/budget.ts: what a run may still cost by the budgets over all tasks (`tasks.budget`). Every runner counts from the same
// file, so tasks that run at once share a budget.
import type { Budget } from '../../config/effective.ts';
import { dollars } from '../../lib/units.ts';
import { readBudgets, spentOf, type BudgetNow } from '../../queries/budgets.ts';
import type { HostContext } from '../../run/host-context.ts';
import { openSpending } from '../../store/spending.ts';
import { clockOf } from './waits.ts';

export interface RunBudget extends Disposable {
  /** Whether there is one. */
  readonly any: boolean;
  /** The task has cost this. Without any budget it counts too: one may be set later in the day. */
  add(costMicros: number): void;
  /** A budget is used up, and until when; null: none is. */
  usedUp(): UsedUp | null;
  /** The same by the configuration as it is now, or was a few seconds ago. */
  usedUpNow(): Promise<UsedUp | null>;
}

export interface UsedUp {
  /** For the agent too. */
  readonly what: string;
  /** "2026-11-20 00:00" */
  readonly until: string;
  readonly untilMs: number;
  /** Where the user can raise it. */
  readonly raise: string;
}

export function openBudget(context: HostContext, project: string, task: string): RunBudget {
  const spending = openSpending(context.stateDir, () => context.now());
  let budgets: readonly Budget[] = [];
  let readAtMs = 0;
  const refresh = async (): Promise<void> => {
    const nowMs = context.now().getTime();
    if (Math.abs(nowMs - readAtMs) <= FRESH_MS) return;
    readAtMs = nowMs;
    budgets = (await readBudgets(context, project)) ?? budgets;
  };
  const usedUp = (): UsedUp | null => longest(spentOf(spending, budgets, project), context.now());
  return {
    get any() {
      return budgets.length > 0;
    },
    add(costMicros) {
      if (costMicros > 0) spending.add({ project, task, costMicros });
      // A budget that is set or changed meanwhile holds too.
      void refresh().catch(() => undefined);
    },
    usedUp,
    async usedUpNow() {
      await refresh();
      return usedUp();
    },
    [Symbol.dispose]: () => spending[Symbol.dispose](),
  };
}

const FRESH_MS = 3000;

/** Of those that are used up, the one whose next period begins last. */
export function longest(budgets: readonly BudgetNow[], now: Date): UsedUp | null {
  const over = budgets
    .filter(({ spentMicros, costMicros }) => spentMicros >= costMicros)
    .map((one) => ({ one, untilMs: endOf(one.per, now) }))
    .toSorted((a, b) => b.untilMs - a.untilMs)[0];
  if (over === undefined) return null;
  const { costMicros, per, of, origin } = over.one;
  return {
    what: `the budget of ${dollars(costMicros)} a ${per}${of === 'project' ? ' of this project' : ''} is used up`,
    until: clockOf(over.untilMs, now.getTime()),
    untilMs: over.untilMs,
    raise: `tasks.budget (${origin})`,
  };
}

/** When the next calendar day or month begins here. */
function endOf(per: Budget['per'], now: Date): number {
  const [year, month, day] = [now.getFullYear(), now.getMonth(), now.getDate()];
  return (per === 'day' ? new Date(year, month, day + 1) : new Date(year, month + 1, 1)).getTime();
}
