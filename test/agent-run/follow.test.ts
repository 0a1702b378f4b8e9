// test/agent-run/follow.test.ts: who watches a task to its end is told how it ended, even in the moment in which its state is written and its
// last event is not.
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

/** Somebody watches; then its last state is there, its last event is not, and this is its runner. */
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

test('the last event is waited for while the runner lives', async () => {
  const [watching] = await almostOver(ownIdentity());
  // Longer than it takes to look at the runner once.
  await sleep(1500);
  appendFileSync(at('events.jsonl'), last);
  expect(await watching).toMatchObject({ code: 0, stderr: '' });
});

test('where it never came, the state says how it ended', async () => {
  const [watching] = await almostOver({ pid: 999_999_999, startTicks: 'x:1' });
  expect(await watching).toMatchObject({ code: 0, stderr: '' });
});
