// A deeply nested line of an agent is recorded as text and cannot crash ags.
import { expect, test } from 'vitest';
import { readEventLines } from '../../src/agents/event-lines.ts';
import { parseObject } from '../../src/agents/json.ts';
import { createRecorder } from '../../src/agent-run/record-events.ts';
import { ioTo } from './given.ts';

const nested = (depth: number): string => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`;

test('a line that is nested too deep is not parsed as an object', () => {
  expect(parseObject(nested(50))).toEqual({ a: expect.any(Array) as unknown[] });
  expect([parseObject(nested(200)), parseObject(nested(400_000))]).toEqual([null, null]);
});

test('a line that is nested too deep is recorded as text', () => {
  const written: unknown[] = [];
  const record = createRecorder(
    () => 0,
    (event) => void written.push(JSON.parse(JSON.stringify(event))),
  );
  const driver = readEventLines(ioTo(record));
  driver.line(`{"type":"tool.started","id":"1","tool":"x","action":${nested(20_000)}}`);
  expect(written).toMatchObject([{ type: 'agent.printed', text: expect.stringMatching(/^\{"type":"tool\.started"/) }]);
});
