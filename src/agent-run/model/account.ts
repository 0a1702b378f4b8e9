// agent-run/model/account.ts: the account of a run: what its models were asked and answered, against its budgets. The gateway meters requests
// to models, and only its count is used once it is there; an agent whose requests it cannot see is believed.
// Invariant: after a budget is used up no further request is sent, and the run stops. Turn N+1 is never asked for.
import type { Agent } from '../../agents/agent.ts';
import { costOf, priceOf, type ModelPrices } from '../../agents/prices.ts';
import type { AgentEvent } from '../../protocol/agent-event.ts';
import type { ModelEvent } from '../../protocol/event.ts';
import { tokensOf, type ModelAccount } from '../../protocol/model-usage.ts';
import type { Goal } from '../../protocol/task.ts';
import { count, dollars } from '../../lib/units.ts';
import type { RunBudget, UsedUp } from './budget.ts';
import type { ModelFailures } from './failures.ts';
import type { RunRecord } from '../run-record.ts';

export interface RunAccount extends ModelAccount {
  /** The agent is started. */
  begin(): void;
  /** The user sent a message: its turns count anew. */
  renewTurns(): void;
  /** Whether a request was refused for what it would use, and not for where it goes. */
  refused(reason: string): boolean;
  /** The agent's own report of its usage. */
  agent(event: AgentEvent): void;
  /** Whether the gateway counts. */
  readonly metered: boolean;
  /** Of the model, since its last answer. */
  readonly failures: ModelFailures;
  /** The agent's requests, as the gateway sees them; null: it does not see them. */
  readonly asks: { readonly open: number; readonly any: boolean } | null;
  /** A sentence, if a budget could not be held because nothing was counted. */
  unheld(): string | null;
}

export interface AccountInput {
  readonly run: RunRecord;
  /** Ends the run as failed. */
  readonly stop: (reason: string) => void;
  /** Over all tasks. */
  readonly budget: RunBudget;
  /** It is used up: the run waits for more. */
  readonly wait: (until: UsedUp) => void;
  readonly goal: Partial<Goal>;
  readonly agent: Pick<Agent, 'countsSession'>;
  /** The agent is signed in by the gateway, so all its requests pass there. */
  readonly metered: boolean;
  readonly prices: ModelPrices;
  readonly emit: (event: ModelEvent) => void;
  readonly failures: ModelFailures;
}

type Used = NonNullable<RunRecord['now']['used']>;

const NOTHING: Used = { inputTokens: 0, outputTokens: 0, costMicros: 0 };

export function createRunAccount(input: AccountInput): RunAccount {
  const { run, goal, agent, failures, budget } = input;
  const { maxCostMicros = null, maxTokens = null, maxTurns = null } = goal;
  let metered = input.metered;
  /** Before the agent was started. */
  let before: Used = NOTHING;
  let turns = 0;
  let asks = { open: 0, any: false };
  let ended: string | null = null;

  /** The sentences with which requests were refused. */
  const said = new Set<string>();
  function stop(text: string): string {
    ended ??= text;
    said.add(ended);
    input.stop(`Stopped: ${ended}.`);
    return ended;
  }
  /** The budget that is used up; null: none. */
  function spent(): string | null {
    const { inputTokens, outputTokens, costMicros } = run.now.used ?? NOTHING;
    if (maxCostMicros !== null && costMicros !== null && costMicros >= maxCostMicros)
      return `cost limit of ${dollars(maxCostMicros)} reached (--max-cost)`;
    if (maxTokens !== null && inputTokens + outputTokens >= maxTokens)
      return `limit of ${count(maxTokens, 'token')} reached (--max-tokens)`;
    return null;
  }
  const needsCost = (): boolean => maxCostMicros !== null || budget.any;
  const noCost = (): boolean => needsCost() && run.now.used?.costMicros === null;
  function add(more: { input: number; output: number }, costMicros: number | null): void {
    const now = run.now.used ?? NOTHING;
    run.set({
      used: {
        inputTokens: now.inputTokens + more.input,
        outputTokens: now.outputTokens + more.output,
        costMicros: now.costMicros === null || costMicros === null ? null : now.costMicros + costMicros,
        by: 'gateway',
      },
    });
  }

  return {
    get strict() {
      return needsCost() || maxTokens !== null;
    },
    get metered() {
      return metered;
    },
    get asks() {
      return metered ? asks : null;
    },
    asking(open) {
      asks = { open: asks.open + (open ? 1 : -1), any: true };
    },
    unheld() {
      if (!(needsCost() || maxTokens !== null) || (run.now.used !== undefined && !noCost())) return null;
      const flag = maxCostMicros !== null ? '--max-cost' : maxTokens !== null ? '--max-tokens' : 'tasks.budget';
      return `${flag} was not held: no request to a model passed the gateway, and the agent did not report what it used.`;
    },
    renewTurns: () => void (turns = 0),
    begin() {
      before = agent.countsSession === true ? NOTHING : (run.now.used ?? NOTHING);
    },
    refusal(generates) {
      const until = ended === null ? budget.usedUp() : null;
      const why = ended ?? spent() ?? until?.what ?? null;
      if (why === null) return null;
      said.add(why);
      if (ended === null && generates) {
        if (why === until?.what) input.wait(until);
        else stop(why);
      }
      return why;
    },
    refused: (reason) => [...said].some((sentence) => reason.includes(sentence)),
    takeTurn() {
      if (maxTurns !== null && turns >= maxTurns) return false;
      turns += 1;
      return true;
    },
    giveTurnBack: () => void (turns -= 1),
    refuseTurn: () => stop(turnsReached(maxTurns ?? turns)),
    failures,
    answered(usage) {
      failures.over();
      const model = usage.model ?? 'unknown model';
      if (!metered && run.now.used?.by !== 'gateway') run.set({ used: before });
      metered = true;
      const tokens = tokensOf(usage);
      const price = priceOf(model, input.prices);
      const costMicros = price === null ? null : costOf(usage, price);
      add(tokens, costMicros);
      budget.add(costMicros ?? 0);
      input.emit({
        type: 'model.answered',
        model,
        inputTokens: tokens.input,
        outputTokens: tokens.output,
        costMicros,
        ...(usage.estimated ? { estimated: true } : {}),
      });
      if (price === null && needsCost()) stop(noPrice(model));
    },
    failed: (status, retryAfterSeconds) => failures.failed(status, retryAfterSeconds),
    agent(event) {
      if (metered) return;
      // Requests are not seen here: only a model that has answered again can have called the next tool.
      if (event.type === 'tool.started' && maxTurns !== null && ++turns > maxTurns) stop(turnsReached(maxTurns));
      if (event.type !== 'agent.used') return;
      const known = event.costMicros !== undefined || (before.costMicros ?? 0) > 0;
      const counted = run.now.used?.costMicros ?? 0;
      run.set({
        used: {
          inputTokens: before.inputTokens + event.inputTokens,
          outputTokens: before.outputTokens + event.outputTokens,
          costMicros: known ? (before.costMicros ?? 0) + (event.costMicros ?? 0) : null,
          by: 'agent',
        },
      });
      budget.add((run.now.used?.costMicros ?? 0) - counted);
      const why = spent();
      if (why !== null) return void stop(why);
      const until = budget.usedUp();
      if (until !== null) input.wait(until);
    },
  };
}

export function noPrice(model: string): string {
  return `no price of ${model} is known, so a cost limit cannot hold; give it one under prices: in your configuration, or use --max-tokens`;
}

const turnsReached = (turns: number): string => `limit of ${count(turns, 'model turn')} reached (--max-turns)`;
