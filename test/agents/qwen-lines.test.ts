// test/agents/qwen-lines.test.ts: how lines of Qwen Code are read, without its program.
import { expect, test } from 'vitest';
import { qwen } from '../../src/agents/qwen/qwen.ts';
import { eventsOf } from './given.ts';

test('a request that Qwen Code repeats is a wait for the model, and not printed as it is', () => {
  const line = (subtype: string, data: object): string =>
    JSON.stringify({ type: 'system', subtype, session_id: 's', parent_tool_use_id: null, data });
  const waited = eventsOf(qwen, [
    line('retry', { reason: 'retry', attempt: 1, maxRetries: 7, delayMs: 4200, discardedToolCalls: 0 }),
    line('retry', { reason: 'model_fallback', discardedToolCalls: 0 }),
  ]).filter(({ type }) => type !== 'agent.finished');
  expect(waited).toEqual([
    { type: 'agent.waited', why: 'The model gave no whole answer. Retrying in 5 s.' },
    { type: 'agent.waited', why: 'The model gave no whole answer. Retrying.' },
  ]);
});
