// agent-run/record-events.ts: turns an agent's events into events of its task, shortened to a safe size and with durations.
// agent.log keeps the full output.
import type { AgentEvent } from '../protocol/agent-event.ts';

/** Remembers when each tool started, to compute its duration. */
export function createRecorder(nowMs: () => number, write: (event: AgentEvent) => void): (event: AgentEvent) => void {
  const started = new Map<string, number>();
  return (event) => {
    if (event.type === 'tool.started') {
      // An agent that never reports the end of its tools must not fill our memory.
      if (started.size >= MAX_OPEN) started.clear();
      started.set(event.id, nowMs());
    }
    if (event.type === 'tool.finished') {
      const at = started.get(event.id);
      started.delete(event.id);
      return write({ ...(at === undefined ? {} : { durationMs: nowMs() - at }), ...(shorten(event) as typeof event) });
    }
    write(shorten(event) as AgentEvent);
  };
}

const MAX_OPEN = 1000;
const MAX_TEXT = 16 * 1024;

/** Long texts keep their beginning and state their length. */
function shorten(value: unknown): unknown {
  if (typeof value === 'string')
    return value.length <= MAX_TEXT ? value : `${value.slice(0, MAX_TEXT)}… (${value.length} characters in all)`;
  if (Array.isArray(value)) return value.slice(0, 100).map(shorten);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shorten(inner)]));
}
