// test/agents/qwen-lines.test.ts: Qwen Code without its program: its settings, and how its lines are read.
import { expect, test } from 'vitest';
import { qwen } from '../../src/agents/qwen/qwen.ts';
import { eventsOf, inputFor } from './given.ts';

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

test('without a person Qwen Code keeps no memory of its own, unless the user wants it', () => {
  const memoryOf = (more: Parameters<typeof inputFor>[1]): unknown =>
    (JSON.parse(qwen.plan(inputFor(qwen, more)).files[0]?.content ?? '') as { memory?: unknown }).memory;
  expect(memoryOf({})).toEqual({ enableManagedAutoMemory: false, enableManagedAutoDream: false });
  const settings = [{ path: '.qwen/settings.json', content: '{"memory":{"enableManagedAutoMemory":true}}' }];
  expect(memoryOf({ settings })).toEqual({ enableManagedAutoMemory: true, enableManagedAutoDream: false });
  expect(memoryOf({ mode: 'interactive' })).toBe(undefined);
});
