// queries/budgets.ts: budgets over all tasks (`tasks.budget`), and what is used of them.
import { loadConfig } from '../config/load.ts';
import type { Budget } from '../config/effective.ts';
import { dollars } from '../lib/units.ts';
import { AgsError } from '../protocol/errors.ts';
import { configInput, type HostContext } from '../run/host-context.ts';
import { openSpending, type Spending } from '../store/spending.ts';

export interface BudgetNow extends Budget {
  readonly spentMicros: number;
}

export function spentOf(spending: Spending, budgets: readonly Budget[], project: string): BudgetNow[] {
  return budgets.map((one) => ({
    ...one,
    spentMicros: spending.spent(one.per, one.of === 'project' ? project : null),
  }));
}

/** Those that hold in a project, from its configuration as it is now; null: outside of any. */
export async function budgetsNow(context: HostContext, project: string | null): Promise<BudgetNow[]> {
  const at = project ?? context.stateDir;
  const budgets = await readBudgets(context, at);
  if (budgets === null || budgets.length === 0) return [];
  using spending = openSpending(context.stateDir, () => context.now());
  return spentOf(spending, budgets, at);
}

/** null: the configuration cannot be read, or waits for approval. */
export async function readBudgets(context: HostContext, project: string): Promise<readonly Budget[] | null> {
  try {
    return (await loadConfig(configInput(context, project))).tasks.budgets;
  } catch (error) {
    if (error instanceof AgsError) return null;
    throw error;
  }
}

/** "$3.20 of $20.00 today". */
export function budgetText({ costMicros, spentMicros, per, of }: BudgetNow): string {
  const when = per === 'day' ? 'today' : 'this month';
  return `${dollars(spentMicros)} of ${dollars(costMicros)} ${when}, all tasks${of === 'project' ? ' of this project' : ''}`;
}
