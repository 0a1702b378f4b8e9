// test/agent-run/follow.test.ts: `ags logs -f` reports how a task ended, even between its last state and its last event.
// needs: sandbox
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { ownIdentity, type ProcessIdentity } from '../../src/lib/process/liveness.ts';
import { ONE, type Result } from '../harness.ts';
import { createAgentMachine, type AgentMachine } from './place.ts';

let machine: AgentMachine;
let last: string;
const at = (file: string): string => join(machine.stateDir, 'tasks/done', file);

const write = (change: object): void => {
  const run = JSON.parse(readFileSync(at('run.json'), 'utf8')) as object;
  writeFileSync(at('run.json'), JSON.stringify({ ...run, ...change }));
};

/** Follows a task whose final state is written, whose last event is not, and whose runner is `runner`. */
async function almostOver(runner: ProcessIdentity): Promise<Promise<Result>[]> {
  machine = createAgentMachine(ONE);
  await machine.runDemo('done', 'write: a.txt 1');
  const lines = readFileSync(at('events.jsonl'), 'utf8').trimEnd().split('\n');
  last = `${lines.pop()}\n`;
  expect(JSON.parse(last)).toMatchObject({ type: 'run.ended', state: 'ready' });
  writeFileSync(at('events.jsonl'), lines.map((line) => `${line}\n`).join(''));
  write({ state: 'running', runner: ownIdentity() });
  const watching = machine.ags(['logs', '-f', 'done']);
  await sleep(1500);
  write({ state: 'ready', runner });
  return [watching];
}

beforeEach(() => () => machine[Symbol.dispose]());

test('a follower waits for the last event while the runner lives', async () => {
  const [watching] = await almostOver(ownIdentity());
  // Longer than one look at the runner.
  await sleep(1500);
  appendFileSync(at('events.jsonl'), last);
  expect(await watching).toMatchObject({ code: 0, stderr: '' });
});

test('without a last event the state tells how the task ended', async () => {
  const [watching] = await almostOver({ pid: 999_999_999, startTicks: 'x:1' });
  expect(await watching).toMatchObject({ code: 0, stderr: '' });
});
