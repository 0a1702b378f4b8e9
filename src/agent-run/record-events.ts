// agent-run/record-events.ts: what an agent says becomes the events of its task: cut to a size that every reader can take, with times.
// The words as they came are in agent.log.
import type { AgentEvent } from '../protocol/agent-event.ts';

type Loggable = { readonly type: string; readonly [field: string]: unknown };

/** Remembers when each tool was started, so that its end has a duration. */
export function createRecorder(nowMs: () => number, write: (event: Loggable) => void): (event: AgentEvent) => void {
  const started = new Map<string, number>();
  return (event) => {
    if (event.type === 'tool.started') {
      // An agent that never ends its tools must not fill our memory.
      if (started.size >= MAX_OPEN) started.clear();
      started.set(event.id, nowMs());
    }
    if (event.type === 'tool.finished') {
      const at = started.get(event.id);
      started.delete(event.id);
      return write({ ...(at === undefined ? {} : { durationMs: nowMs() - at }), ...(shorten(event) as Loggable) });
    }
    write(shorten(event) as Loggable);
  };
}

const MAX_OPEN = 1000;
const MAX_TEXT = 16 * 1024;

/** Long texts keep their beginning, and say how long they were. */
function shorten(value: unknown): unknown {
  if (typeof value === 'string')
    return value.length <= MAX_TEXT ? value : `${value.slice(0, MAX_TEXT)}… (${value.length} characters in all)`;
  if (Array.isArray(value)) return value.slice(0, 100).map(shorten);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shorten(inner)]));
}
