// test/merge/merge-again.full.test.ts: an agent continues after a merge. Merged work is not merged, questioned or undone again.
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { createAgentMachine, type AgentMachine } from '../agent-run/place.ts';

const NAME = 'again';
let machine: AgentMachine;

beforeEach(async () => {
  machine = createAgentMachine('user', { 'a.txt': 'old a\n', 'b.txt': 'old b\n', 'c.txt': 'old c\n' });
  onTestFinished(() => machine[Symbol.dispose]());
  machine.git('config', 'user.name', 'Dev');
  machine.git('config', 'user.email', 'dev@example.test');
  await machine.runDemo(NAME, 'write: a.txt one // write: b.txt one');
});

async function goOn(script: string): Promise<void> {
  const turns = machine.events(NAME).filter(({ type }) => type === 'run.ended').length;
  const sent = await machine.ags(['send', NAME, script]);
  expect(sent.code, sent.stderr).toBe(0);
  await machine.event(
    NAME,
    'run.ended',
    () => machine.events(NAME).filter(({ type }) => type === 'run.ended').length > turns,
  );
}

async function merge(...args: string[]): Promise<void> {
  const merged = await machine.ags(['merge', NAME, ...args]);
  expect(merged.code, merged.stderr).toBe(0);
}

const onMain = (): string[] => ['a', 'b', 'c'].map((file) => machine.git('show', `main:${file}.txt`).trim());

test.each([[[]], [['--keep-commits']]])('changes after a merge can be merged again %j', async (how: string[]) => {
  await merge(...how);
  machine.write('c.txt', 'mine\n');
  machine.git('commit', '-qam', 'Mine');
  await goOn('write: a.txt two');
  await merge(...how);
  expect({ files: onMain(), state: machine.run(NAME).state }).toEqual({
    files: ['two', 'one', 'mine'],
    state: 'merged',
  });
  expect(machine.git('status', '--porcelain')).toBe('');
});

test('a change of the user since the merge is still a conflict, and nothing is merged', async () => {
  await merge();
  machine.write('a.txt', 'mine\n');
  machine.git('commit', '-qam', 'Mine');
  await goOn('write: a.txt two');
  const merged = await machine.ags(['merge', NAME]);
  expect({ code: merged.code, files: onMain() }).toEqual({ code: 7, files: ['mine', 'one', 'old c'] });
  expect(merged.stderr).toContain('a.txt');
});

test('changes that the user reverted do not come back', async () => {
  await merge();
  machine.write('b.txt', 'old b\n');
  machine.git('commit', '-qam', 'Not that one');
  await goOn('write: a.txt two');
  await merge();
  expect(onMain()).toEqual(['two', 'old b', 'old c']);
});

test('partial merges bring each part once, and none with the next', async () => {
  await merge('a.txt');
  await goOn('write: a.txt two // write: c.txt two');
  await merge('c.txt');
  expect(onMain()).toEqual(['one', 'old b', 'two']);
  await merge();
  expect({ files: onMain(), state: machine.run(NAME).state }).toEqual({
    files: ['two', 'one', 'two'],
    state: 'merged',
  });
});

test.each([
  ['that was undone', async () => void (await machine.ags(['undo', NAME]))],
  ['that is no longer part of the branch', () => machine.git('reset', '-q', '--hard', 'HEAD~1')],
])('after a merge %s everything is merged again', async (_what, takeBack) => {
  await merge();
  await takeBack();
  expect(onMain()).toEqual(['old a', 'old b', 'old c']);
  await goOn('write: a.txt two');
  await merge();
  expect(onMain()).toEqual(['two', 'one', 'old c']);
});

test('a restarted run does not undo merged work of the run before', async () => {
  await goOn('write: c.txt two');
  await merge();
  const restarted = await machine.ags(['restart', NAME], { timeoutMs: 60_000 });
  expect(restarted.code, restarted.stderr).toBe(0);
  await machine.until(NAME, ['ready']);
  await merge();
  expect(onMain()).toEqual(['one', 'one', 'two']);
});

test('merges of a removed task with the same name do not count', async () => {
  await merge();
  expect((await machine.ags(['rm', '--yes', NAME])).code).toBe(0);
  machine.write('a.txt', 'newer\n');
  machine.git('commit', '-qam', 'Newer');
  await machine.runDemo(NAME, 'write: c.txt two');
  machine.write('a.txt', 'one\n');
  machine.git('commit', '-qam', 'Not that one');
  await merge();
  expect(onMain()).toEqual(['one', 'one', 'two']);
});
