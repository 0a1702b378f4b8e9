// agent-run/watch-agent.ts: what a runner watches for in the words of its agent: whether the budget is used up, and whether it waits for a person.
import type { Agent } from '../agents/agent.ts';
import type { AgentEvent } from '../protocol/agent-event.ts';
import type { Goal, RunFile } from '../protocol/task.ts';
import type { Desk } from './control-server.ts';
import type { RunKeeper } from './run-record.ts';

/** Money and steps of all turns together. */
export function createBudget(
  run: RunKeeper,
  desk: Desk,
  { maxCostMicros, maxTurns }: Partial<Goal>,
  agent: Agent,
): { count(event: AgentEvent): void } {
  const nothing = { inputTokens: 0, outputTokens: 0, costMicros: null };
  const before = agent.countsSession === true ? nothing : (run.now.used ?? nothing);
  let steps = 0;
  return {
    count(event) {
      if (event.type === 'tool.started' && agent.countsTurns !== true && maxTurns != null && ++steps > maxTurns)
        desk.stop(true, { text: `It has used up its ${maxTurns} steps (--max-turns).`, failed: true });
      if (event.type !== 'agent.used') return;
      const cost =
        event.costMicros === undefined && before.costMicros === null
          ? null
          : (before.costMicros ?? 0) + (event.costMicros ?? 0);
      run.set({
        used: {
          inputTokens: before.inputTokens + event.inputTokens,
          outputTokens: before.outputTokens + event.outputTokens,
          costMicros: cost,
        },
      });
      if (maxCostMicros != null && cost !== null && cost > maxCostMicros)
        desk.stop(true, {
          text: `It has used up its budget of $${(maxCostMicros / 1e6).toFixed(2)} (--max-cost).`,
          failed: true,
        });
    },
  };
}

/** Who waits for a person is called so, and only for as long. */
export function createAttention(run: RunKeeper): {
  question(event: AgentEvent): void;
  network(host: string | null): void;
  /** It goes on, and somebody should look: until the agent does something. */
  service(why: string): void;
} {
  const show = (needs: NonNullable<RunFile['needs']>, reason: string | null): void => {
    if (reason !== null && run.now.state === 'running') {
      run.set({ reason, needs });
      run.move('needs-you');
    } else if (reason === null && run.now.state === 'needs-you') {
      run.move('running');
      run.forgetNeed();
    }
  };
  return {
    question: (event) => show('answer', event.type === 'agent.asked' ? `It asks: ${event.question}` : null),
    service: (why) => show('look', why),
    network: (host) => show('host', host === null ? null : `It wants to reach ${host}: ags allow ${host}`),
  };
}
