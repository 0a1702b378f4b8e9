// agent-run/watch-agent.ts: watches whether a run needs the user.
import type { AgentEvent } from '../protocol/agent-event.ts';
import { NEEDS } from '../protocol/task.ts';
import type { RunRecord } from './run-record.ts';

/** Keeps a run in the state "needs-you" while it waits for the user, and no longer. Needs are kept by kind: none clears another. */
export interface Attention {
  /** A question needs an answer until the agent goes on. */
  agent(event: AgentEvent): void;
  /** The hosts that connections wait for now. */
  network(hosts: readonly string[]): void;
  /** The run continues, but the user should look. The agent's next action clears this. */
  service(why: string): void;
  /** Its model has answered only failures for a while; null: not any more. */
  model(why: string | null): void;
  /** Whether an agent at a terminal waits at its prompt. */
  prompt(waiting: boolean): void;
}

export function createAttention(run: RunRecord, name: string): Attention {
  const open = new Map<Need, string>();
  const show = (need: Need, reason: string | null): void => {
    if ((open.get(need) ?? null) === reason) return;
    if (reason === null) open.delete(need);
    else open.set(need, reason);
    const { state } = run.now;
    if (state !== 'running' && state !== 'needs-you') return;
    const first = NEEDS.find((one) => open.has(one));
    if (first !== undefined) {
      run.set({ needs: first, reason: open.get(first) ?? '' });
      if (state === 'running') run.move('needs-you');
    } else if (state === 'needs-you') {
      run.move('running');
      run.forgetReason();
    }
  };
  return {
    agent(event) {
      if (event.type === 'agent.asked') show('answer', `It asks: ${event.question}`);
      else if (goesOn(event)) for (const need of ['answer', 'look'] as const) show(need, null);
    },
    network: ([host]) => show('host', host === undefined ? null : `It wants to reach ${host}: ags allow ${host}`),
    service: (why) => show('look', why),
    model: (why) => show('model', why),
    prompt: (waiting) => show('prompt', waiting ? `Waiting at its prompt: ags attach ${name}` : null),
  };
}

type Need = (typeof NEEDS)[number];

/** Whether an agent that asked has stopped waiting. Output, figures and tools that end can still come while it waits. */
function goesOn({ type }: AgentEvent): boolean {
  switch (type) {
    case 'agent.started':
    case 'agent.said':
    case 'agent.thought':
    case 'agent.finished':
    case 'tool.started':
      return true;
    case 'agent.asked':
    case 'agent.used':
    case 'agent.waited':
    case 'agent.printed':
    case 'tool.finished':
      return false;
  }
}
