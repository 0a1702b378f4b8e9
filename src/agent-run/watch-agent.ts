// agent-run/watch-agent.ts: watches an agent's events for two things: whether a budget is used up, and whether it needs the user.
import type { Agent } from '../agents/agent.ts';
import type { AgentEvent } from '../protocol/agent-event.ts';
import type { Goal, RunFile } from '../protocol/task.ts';
import { count } from '../lib/units.ts';
import type { ControlServer } from './control-server.ts';
import type { RunRecord } from './run-record.ts';

/** Counts cost over all turns, and steps of this turn. */
export function createBudget(
  run: RunRecord,
  control: ControlServer,
  { maxCostMicros, maxTurns }: Partial<Goal>,
  agent: Agent,
): { count(event: AgentEvent): void } {
  const nothing = { inputTokens: 0, outputTokens: 0, costMicros: null };
  const before = agent.countsSession === true ? nothing : (run.now.used ?? nothing);
  let steps = 0;
  return {
    count(event) {
      if (event.type === 'tool.started' && agent.countsTurns !== true && maxTurns != null && ++steps > maxTurns)
        control.stop(true, {
          text: `Stopped: limit of ${count(maxTurns, 'step')} reached (--max-turns).`,
          failed: true,
        });
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
        control.stop(true, {
          text: `Stopped: cost limit of $${(maxCostMicros / 1e6).toFixed(2)} reached (--max-cost).`,
          failed: true,
        });
    },
  };
}

/** Keeps a run in the state "needs-you" while it waits for the user, and no longer. */
export function createAttention(run: RunRecord): {
  question(event: AgentEvent): void;
  network(host: string | null): void;
  /** The run continues, but the user should look. The agent's next action clears this. */
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
