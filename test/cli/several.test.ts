// test/cli/several.test.ts: one command over several tasks: each is handled, and no failure hides another.
// needs: sandbox
import { expect, test } from 'vitest';
import { agentTask } from '../agent-run/agent-task.ts';
import { createMachine, ONE } from '../harness.ts';
import { onTerminal } from './on-terminal.ts';
import { createAgentMachine } from '../agent-run/place.ts';

test('stop, show, logs and restart take several tasks, handle each, and exit with the status of the first failure', async () => {
  using machine = createAgentMachine(ONE);
  const start = (name: string, goal: string): Promise<unknown> =>
    machine.ags(['start', name, goal, '-a', 'demo', '-d', '--max-parallel', '64']);
  await start('one', 'write: one.txt 1 // say: first');
  await start('two', 'say: second // wait: 600');
  await machine.until('one', ['ready', 'failed']);
  await machine.event('two', 'agent.said');

  // A name that is given twice counts once.
  expect(await machine.ags(['stop', 'nosuch', 'one', 'two', 'two'])).toEqual({
    code: 3,
    signal: null,
    stdout: '',
    stderr: [
      'ags: There is no task "nosuch".',
      '     List them: ags list --all',
      'ags: one was not running.',
      'ags: two is being stopped.',
      'ags: 3 tasks: 1 failed (nosuch), 1 not running, 1 stopped.',
      '',
    ].join('\n'),
  });
  expect(machine.run('two').state).toBe('stopped');
  expect(await machine.ags(['stop', '--all', 'one'])).toMatchObject({
    code: 2,
    stderr: 'ags: Name tasks or use --all, not both.\n     ags stop --all\n',
  });

  const shown = await machine.ags(['show', 'one', 'nosuch', 'two', '--json']);
  expect(
    shown.stdout.split('\n').flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { name: string }).name])),
  ).toEqual(['one', 'two']);
  expect([shown.code, JSON.parse(shown.stderr)]).toMatchObject([
    3,
    { error: { code: 'task.not-found', task: 'nosuch' } },
  ]);

  const logs = await machine.ags(['logs', 'one', 'two']);
  expect(logs.stdout).toMatch(/^==> one <==\n[^]*first[^]*\n==> two <==\n[^]*second/);
  const followed = await machine.ags(['logs', '-f', 'one', 'two']);
  expect(
    followed.stdout
      .split('\n')
      .filter((line) => /first|second/.test(line))
      .map((line) => line.slice(0, 6)),
  ).toEqual(expect.arrayContaining(['one | ', 'two | ']));

  // Without a name there is no guess between several, and a pipe cannot be asked.
  expect(await machine.ags(['restart'])).toMatchObject({
    code: 2,
    stderr:
      'ags: Which task? ags restart can take 2 tasks.\n     Name one or more, or @ for the latest:\n       two\n       one\n',
  });
  const one = await machine.ags(['continue']);
  expect([one.code, one.stderr.split('\n')[0]]).toEqual([0, 'ags: using task two.']);
  await machine.ags(['stop', 'two']);
  const again = await machine.ags(['restart', 'one', 'two']);
  expect(again).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('ags: 2 tasks: 2 started again.\n') as string,
  });
  expect([machine.run('one').number, machine.run('two').number]).toEqual([2, 2]);
  await machine.ags(['stop', '--all']);
});

test('merge takes several tasks, asks once, and a conflict of one leaves the others', async () => {
  using machine = createMachine(ONE, { files: { 'a.txt': 'a\n', 'b.txt': 'b\n' } });
  const make = async (script: string): Promise<string> => (await agentTask(machine, script)).id;
  const one = await make('echo one > a.txt');
  const two = await make('echo two > a.txt');
  const three = await make(`echo three > b.txt; mkdir ${two}; echo x > ${two}/x`);
  const subjects = (): string[] =>
    machine
      .git('log', '--format=%(trailers:key=Ags-Task,valueonly)')
      .split('\n')
      .filter((line) => line !== '');

  // The agent of the first task chose the name of a file, and cannot make ags merge a task instead.
  const both = await machine.ags(['merge', three, two, '-y']);
  expect([both.code, both.stderr.split('\n')[0]]).toEqual([2, `ags: "${two}" is the name of a task and of a path.`]);
  expect((await machine.ags(['merge', three, '--dry-run', '--', two])).stderr).toContain(`${three}: 1 file onto main`);

  const no = onTerminal(machine, ['merge', '--ready'], { answer: 'n' });
  expect([no.code, no.screen.match(/Merge .*?\?/g)]).toEqual([1, ['Merge 3 tasks?']]);
  expect(subjects()).toEqual([]);
  const yes = onTerminal(machine, ['merge', one, two, three, '--'], { answer: 'y' });
  expect(yes.screen).toContain(`Conflict: main and ${two} both changed 1 file.`);
  expect(yes.screen).toContain(`ags: 3 tasks: 2 merged, 1 failed (${two}).\n`);
  expect([yes.code, subjects(), machine.git('status', '--porcelain')]).toEqual([7, [three, one], '']);
  expect((await machine.ags(['merge', '--ready', '-y', '-m', 'x'])).code).toBe(7);

  const checked = await machine.ags(['check', two, 'nosuch', '--into', 'main', '--run', 'true', '--json', '--']);
  expect(checked.code).toBe(7);
  expect(
    checked.stderr
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { error: { code: string } }).error.code])),
  ).toEqual(['project.changed', 'task.not-found']);
});
