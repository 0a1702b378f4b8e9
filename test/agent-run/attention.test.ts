// test/agent-run/attention.test.ts: what a run needs from the user is kept by kind.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createRunRecord } from '../../src/agent-run/run-record.ts';
import { createAttention, type Attention } from '../../src/agent-run/watch-agent.ts';
import { firstRun } from '../../src/agent-run/start.ts';
import { openEvents } from '../../src/store/events.ts';
import { beginTask } from '../../src/store/tasks.ts';

let dir = '';
let attention: Attention;
let file = '';
const shown = (): unknown[] => {
  const { state, needs, reason } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  return [state, needs, reason].filter((one) => one !== undefined);
};

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ags-attention-'));
  const paths = beginTask(dir);
  file = paths.run;
  const stored = { paths, run: { ...firstRun('0'.repeat(40), 0, 1), state: 'running' as const } };
  const events = openEvents(paths.events, 'x', () => new Date());
  const run = createRunRecord(stored as never, events);
  run.set({});
  attention = createAttention(run, 'some-task');
});
afterEach(() => rmSync(dir, { recursive: true }));

const ASKS = { type: 'agent.asked', question: 'Red or blue?' } as const;
const ASKED = ['needs-you', 'answer', 'It asks: Red or blue?'];

test('a question stays while hosts are refused, asked for and given up beside it, until the agent goes on', () => {
  attention.agent(ASKS);
  expect(shown()).toEqual(ASKED);
  attention.network([]);
  attention.network(['a.test']);
  attention.agent({ type: 'agent.used', inputTokens: 1, outputTokens: 1 });
  attention.agent({ type: 'agent.printed', stream: 'stderr', text: 'a warning' });
  expect(shown()).toEqual(ASKED);
  attention.network([]);
  expect(shown()).toEqual(ASKED);
  attention.agent({ type: 'agent.said', text: 'Blue, then.' });
  expect(shown()).toEqual(['running']);
});

test('after an answer, hosts that wait are shown, one after the other', () => {
  attention.network(['a.test', 'b.test']);
  expect(shown()).toEqual(['needs-you', 'host', 'It wants to reach a.test: ags allow a.test']);
  attention.agent(ASKS);
  expect(shown()).toEqual(ASKED);
  attention.agent({ type: 'agent.said', text: 'I chose blue.' });
  attention.network(['b.test']);
  expect(shown()).toEqual(['needs-you', 'host', 'It wants to reach b.test: ags allow b.test']);
  attention.network([]);
  expect(shown()).toEqual(['running']);
});

test('an agent at its prompt waits for a person, whatever else is open, until it goes on', () => {
  attention.service('The database failed.');
  attention.prompt(true);
  expect(shown()).toEqual(['needs-you', 'prompt', 'Waiting at its prompt: ags attach some-task']);
  attention.network(['a.test']);
  expect(shown()).toEqual(['needs-you', 'host', 'It wants to reach a.test: ags allow a.test']);
  attention.network([]);
  attention.prompt(false);
  expect(shown()).toEqual(['needs-you', 'look', 'The database failed.']);
});

test('a failed service is forgotten when the agent goes on, a host that waits is not', () => {
  attention.service('The database failed.');
  attention.network(['a.test']);
  attention.agent({ type: 'tool.started', id: '1', tool: 'Bash', action: { kind: 'command', command: 'true' } });
  expect(shown()).toEqual(['needs-you', 'host', 'It wants to reach a.test: ags allow a.test']);
});
