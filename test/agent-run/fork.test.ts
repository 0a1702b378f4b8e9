// test/agent-run/fork.test.ts: forks start from another task's work.
// needs: sandbox
import { expect, test } from 'vitest';
import { USUAL } from '../harness.ts';
import { createAgentMachine } from './place.ts';

test.each(USUAL)('as %s: a fork continues from the files of a task, which stays unchanged', async (caller) => {
  using machine = createAgentMachine(caller, { 'a.txt': 'a\n' });
  await machine.runDemo('first', 'append: a.txt one');
  const before = machine.git('rev-parse', 'ags/first');
  const forked = await machine.ags(['fork', 'first', 'append: a.txt two', '--name', 'second']);
  expect(forked, forked.stderr).toMatchObject({ code: 0 });
  expect(machine.run('second').state).toBe('ready');
  expect(machine.git('show', 'ags/second:a.txt')).toBe('a\none\ntwo\n');
  expect(machine.git('rev-parse', 'ags/first')).toBe(before);

  // The same agent, named or not, keeps its model, as the page names it; another agent has its own.
  await machine.runDemo('with-model', 'append: a.txt one', ['--model', 'small']);
  const modelOf = async (...more: string[]): Promise<string | undefined> => {
    const { stdout, stderr } = await machine.ags(['fork', 'with-model', 'say: hello', '-d', ...more]);
    expect(stderr).toContain('started');
    await machine.until(stdout.trim(), ['ready', 'no-changes', 'failed']);
    return machine.task(stdout.trim()).goal?.model;
  };
  expect(await modelOf()).toBe('small');
  expect(await modelOf('--agent', 'demo')).toBe('small');
  expect(await modelOf('--agent', '/bin/true')).toBeUndefined();

  // Uses another agent and detaches; only the name is printed.
  const other = await machine.ags(['fork', 'second', 'cat a.txt', '--agent', 'sh -c "echo three >> a.txt"', '-d']);
  expect(other, other.stderr).toMatchObject({ code: 0, stdout: 'cat-a-txt\n' });
  await machine.until('cat-a-txt', ['ready', 'failed']);
  expect(machine.git('show', 'ags/cat-a-txt:a.txt')).toBe('a\none\ntwo\nthree\n');
  expect((await machine.ags(['merge', 'second', '--yes'])).code).toBe(0);
  expect(machine.git('show', 'main:a.txt')).toBe('a\none\ntwo\n');
});

test('a task that cannot be forked is an error, and nothing starts', async () => {
  using machine = createAgentMachine('root');
  expect(await machine.ags(['fork'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('ags fork <task> "<goal>"'),
  });
  expect(await machine.ags(['fork', 'nothing', 'x'])).toMatchObject({ code: 3 });
  await machine.runDemo('empty', 'say: nothing to do');
  const none = await machine.ags(['fork', 'empty', 'go on', '--agent', 'unknown']);
  expect(none.code).not.toBe(0);
  expect(machine.tasks()).toEqual(['empty']);
});
