// hooks/observer.ts: for agents that no hook can stop: hooks see the agent's reported actions afterwards.
// Invariant: bounded, whatever an agent prints; the number of skipped actions is reported.
import type { Action, AgentEvent } from '../protocol/agent-event.ts';
import type { GateRequest } from '../protocol/hook.ts';

export interface Observer {
  observe(event: AgentEvent): void;
  /** Resolves when all observed actions have been judged. */
  close(): Promise<void>;
}

const MOST_WAITING = 500;
const MOST_STARTED = 1000;

/** `leftOut` is called at the end if there were too many actions to judge. */
export function createObserver(
  decide: (request: GateRequest) => Promise<unknown>,
  leftOut: (count: number) => void,
): Observer {
  const started = new Map<string, { tool: string; action: Action }>();
  let waiting = 0;
  let dropped = 0;
  let last: Promise<unknown> = Promise.resolve();
  const ask = (request: GateRequest): void => {
    if (waiting >= MOST_WAITING) return void dropped++;
    waiting++;
    last = last.then(() => decide(request)).finally(() => waiting--);
  };
  return {
    observe(event) {
      if (event.type === 'tool.started') {
        if (started.size >= MOST_STARTED) started.delete(started.keys().next().value ?? '');
        started.set(event.id, { tool: event.tool, action: event.action });
        ask({ when: 'before', tool: event.tool, actions: [event.action], input: null });
      } else if (event.type === 'tool.finished') {
        const begun = started.get(event.id);
        started.delete(event.id);
        if (begun !== undefined && event.outcome === 'done')
          ask({ when: 'after', tool: begun.tool, actions: [begun.action], input: null });
      }
    },
    async close() {
      await last;
      if (dropped > 0) leftOut(dropped);
      dropped = 0;
    },
  };
}
