// What an agent prints may be nested as deep as it likes: it is shown as it came, and ends nobody.
import { expect, test } from 'vitest';
import { readEventLines } from '../../src/agents/event-lines.ts';
import { parseObject } from '../../src/agents/json.ts';
import type { AgentEvent } from '../../src/protocol/agent-event.ts';
import { createRecorder } from '../../src/agent-run/record-events.ts';

const nested = (depth: number): string => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`;

test('deeper than anybody can walk through, a line is no object', () => {
  expect(parseObject(nested(50))).toEqual({ a: expect.any(Array) as unknown[] });
  expect([parseObject(nested(200)), parseObject(nested(400_000))]).toEqual([null, null]);
});

test('it is recorded as words', () => {
  const written: unknown[] = [];
  const record = createRecorder(
    () => 0,
    (event) => void written.push(JSON.parse(JSON.stringify(event))),
  );
  const driver = readEventLines({
    write: () => undefined,
    end: () => undefined,
    emit: (event: AgentEvent) => record(event),
    gate: () => Promise.resolve({ allow: true }),
  });
  driver.line(`{"type":"tool.started","id":"1","tool":"x","action":${nested(20_000)}}`);
  expect(written).toMatchObject([{ type: 'agent.printed', text: expect.stringMatching(/^\{"type":"tool\.started"/) }]);
});
