// agents/event-lines.ts: the driver of programs that print events of ags, one JSON object per line. Any other output is kept and
// shown as it is.
import type { AgentEvent } from '../protocol/agent-event.ts';
import type { AgentDriver, AgentIo } from './agent.ts';
import { parseObject } from './json.ts';

export function readEventLines(io: AgentIo): AgentDriver {
  let finished = false;
  const emit = (event: AgentEvent): void => {
    if (event.type === 'agent.finished') finished = true;
    io.emit(event);
  };
  return {
    start(prompt) {
      io.write(prompt);
      io.end();
    },
    line: (text) => emit(readEvent(text) ?? { type: 'agent.printed', stream: 'stdout', text }),
    errorLine: (text) => emit({ type: 'agent.printed', stream: 'stderr', text }),
    send: () => false,
    interrupt: () => false,
    exited(code) {
      if (!finished)
        emit(
          code === 0
            ? { type: 'agent.finished', ok: true }
            : { type: 'agent.finished', ok: false, reason: `it ended with ${code}` },
        );
    },
  };
}

/** Fields of each event and their types; others are dropped. */
const FIELDS: Readonly<
  Record<AgentEvent['type'], readonly (readonly [name: string, type: string, needed: boolean])[]>
> = {
  'agent.started': [
    ['session', 'string', false],
    ['model', 'string', false],
  ],
  'agent.said': [['text', 'string', true]],
  'agent.thought': [['text', 'string', true]],
  'tool.started': [
    ['id', 'string', true],
    ['tool', 'string', true],
    ['action', 'object', true],
  ],
  'tool.finished': [
    ['id', 'string', true],
    ['outcome', 'string', true],
    ['exitCode', 'number', false],
    ['output', 'string', false],
  ],
  'agent.used': [
    ['inputTokens', 'number', true],
    ['outputTokens', 'number', true],
    ['costMicros', 'number', false],
  ],
  'agent.waited': [['why', 'string', true]],
  'agent.asked': [['question', 'string', true]],
  'agent.finished': [
    ['ok', 'boolean', true],
    ['text', 'string', false],
    ['reason', 'string', false],
  ],
  'agent.printed': [['text', 'string', true]],
};

function readEvent(line: string): AgentEvent | null {
  const given = parseObject(line);
  if (given === null) return null;
  const type = given['type'];
  if (typeof type !== 'string' || !Object.hasOwn(FIELDS, type)) return null;
  const fields = FIELDS[type as AgentEvent['type']];
  const fits = fields.every(([name, kind, needed]) =>
    given[name] === undefined || given[name] === null ? !needed : typeof given[name] === kind,
  );
  if (!fits) return null;
  const known = fields.flatMap(([name]) => (given[name] === undefined ? [] : [[name, given[name]]]));
  return { type, ...(type === 'agent.started' ? { session: null } : {}), ...Object.fromEntries(known) } as AgentEvent;
}
