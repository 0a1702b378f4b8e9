// test/faults/promises.proof.test.ts: plants the damage that acts look for themselves, beside the checker, and verifies that they find it.
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CALLERS } from '../harness.ts';
import { exportTask, importTask } from './carried.ts';
import { checkTask } from './checked.ts';
import { forkTask } from './forked.ts';
import { createGround, type Ground } from './ground.ts';
import { serveGateway } from './served.ts';

let ground: Ground;
beforeAll(async () => {
  ground = await createGround(CALLERS[0] ?? 'user');
  const made = await ground.ags('start', 'work', 'write: a.txt one // commit: One', '-a', 'demo');
  expect(made.code, made.stderr).toBe(0);
});
afterAll(() => ground[Symbol.asyncDispose]());

const beside = (...parts: string[]): string => join(ground.machine.root, ...parts);

test('an export act finds a missing file and an incomplete one', async () => {
  const { running, end } = exportTask(ground, 'work', 'out');
  const done = await running.ended;
  rmSync(beside('out/work.ags'));
  writeFileSync(beside('out/work.ags.7.part'), '');
  expect(await end?.(done)).toEqual([
    'left: work.ags.7.part beside a file of an export',
    'the export of work was reported as done, but the file is missing',
  ]);
});

test('an import act finds a task with other content', async () => {
  const { running, end } = await importTask(ground, 'work', 'in', false);
  const done = await running.ended;
  ground.machine.git('update-ref', `refs/heads/ags/${done.stdout.trim()}`, 'main');
  expect(await end?.(done)).toEqual([expect.stringContaining('differs from work')]);
});

test('a fork act finds a fork without the original work and a missing fork', async () => {
  const look = async (name: string, plant: () => Promise<unknown>): Promise<string[]> => {
    const begun = await forkTask(ground, 'work', name, 'say: well');
    begun.leave?.();
    const done = await begun.running.ended;
    while (ground.processes().some(({ role }) => role === 'runner')) await sleep(50);
    await plant();
    return (await begun.end?.(done)) ?? [];
  };
  expect(await look('fork', async () => ground.machine.git('update-ref', 'refs/heads/ags/fork', 'main'))).toEqual([
    'fork does not include the work of work',
  ]);
  expect(await look('gone', () => ground.ags('rm', '--yes', 'gone'))).toEqual([
    expect.stringContaining('gone was reported as started, but is missing'),
  ]);
});

test('a gateway act finds a damaged log and a leftover socket', async () => {
  const begun = await serveGateway(ground, 'gw');
  const log = join(ground.stateDir, 'network/gw.jsonl');
  while (!existsSync(log)) await sleep(20);
  begun.leave?.();
  const done = await begun.running.ended;
  appendFileSync(log, 'no decision\n');
  writeFileSync(beside('gw/old.sock'), '');
  expect(await begun.end?.(done)).toEqual([
    expect.stringContaining('is not a decision'),
    'left: old.sock of a gateway',
  ]);
});

test('a checked merge act finds a merge without passed checks', async () => {
  const { running, end } = checkTask(ground, 'work', () => undefined);
  const done = await running.ended;
  expect(done.code, done.stderr).toBe(0);
  const file = join(ground.stateDir, 'tasks/work/checks.json');
  writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), state: 'failed' }));
  expect(await end?.(done)).toEqual(['work is merged although its checks did not pass']);
});
