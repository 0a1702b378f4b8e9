// test/agent-run/after.test.ts: a task that begins after another one: from its result, never before, and also after a crash.
// needs: sandbox
import { expect, test } from 'vitest';
import { judgeAfter } from '../../src/agent-run/after.ts';
import type { Goal } from '../../src/protocol/task.ts';
import { RUN_STATES } from '../../src/protocol/run-state.ts';
import { ONE } from '../harness.ts';
import { createAgentMachine, type AgentMachine } from './place.ts';

const start = (machine: AgentMachine, goals: string, more: readonly string[] = []) => {
  machine.write('../goals.md', goals);
  return machine.ags(['start', '--file', '../goals.md', '-a', 'demo', '-d', ...more]);
};
const shown = async (machine: AgentMachine, name: string): Promise<string> =>
  (await machine.ags(['show', name])).stdout;

test('a task waits for the one it names, without a place in the queue, and begins from its result', async () => {
  using machine = createAgentMachine(ONE);
  const goals =
    '- first\n- run: cat made.txt // write: second.txt x (name: second, after: first)\n- write: made.txt one // wait: 1 (name: first)\n';
  const begun = await start(machine, goals, ['--max-parallel', '1']);
  // The one that waits is created after the one it waits for, and a given name is not taken by a goal without one.
  expect(begun, begun.stderr).toMatchObject({ code: 0, stdout: 'first-2\nfirst\nsecond\n' });
  expect((await machine.event('second', 'run.waiting'))['why']).toBe('starts when first has ended well');
  expect(await machine.until('second', ['ready', 'failed'])).toMatchObject({
    state: 'ready',
    base: machine.run('first').result?.commit,
  });
  expect(machine.task('second').goal).toMatchObject({
    base: machine.run('first').result?.commit,
    origin: machine.task('first').goal?.base,
  });
  expect(machine.events('second').find(({ type }) => type === 'tool.finished')?.['output']).toBe('one\n');
  expect(machine.branch('second')).toEqual(expect.arrayContaining(['made.txt', 'second.txt']));
  expect(machine.run('second')).not.toHaveProperty('after');
});

test('a failed task starts none that waits for it; a crash, a stop and a restart change nothing about that', async () => {
  using machine = createAgentMachine(ONE);
  await start(
    machine,
    '- fail: no (name: first)\n- write: a.txt x (name: second, after: first)\n- write: b.txt x (name: third, after: first)\n',
  );
  await machine.until('first', ['failed', 'ready']);
  expect(machine.run('first').state).toBe('failed');
  const why =
    'first failed; this starts when it ends well (ags continue first). To start without it: ags continue --now second';
  await machine.event('second', 'run.waiting', (event) => event['why'] === why);
  expect(machine.run('second')).toMatchObject({ state: 'queued', after: 'first', reason: `Waiting: ${why}` });
  expect(await shown(machine, 'second')).toContain('queued');
  expect((await machine.ags(['continue', 'second'])).stderr).toBe(
    'ags: second waits for first. To start it without first: ags continue --now second\n',
  );

  // As after a power cut; the next runner waits on.
  for (const name of ['second', 'third']) process.kill(machine.run(name).runner.pid, 'SIGKILL');
  const listed = async (): Promise<string> => (await machine.ags(['list'])).stdout;
  await expect.poll(async () => (await listed()).match(/ interrupted /g)).toHaveLength(2);
  // Cleanup removes failed tasks without changes, but not one that another waits for.
  await machine.ags(['cleanup']);
  expect(machine.tasks()).toEqual(['first', 'second', 'third']);
  expect((await machine.ags(['continue', '--all'])).stderr).toContain('2 waiting');
  expect((await machine.ags(['stop', 'third'])).code).toBe(0);
  expect((await machine.ags(['restart', 'third', 'second'])).code).toBe(7);
  await machine.event('third', 'run.waiting');
  expect([machine.run('second').after, machine.run('third').after]).toEqual(['first', 'first']);

  expect((await machine.ags(['continue', '--now', 'second'])).stderr).toBe(
    'ags: second starts without first. Follow it: ags logs -f second\n',
  );
  expect((await machine.until('second', ['ready', 'failed'])).base).toBe(machine.git('rev-parse', 'HEAD').trim());
  // What it waits for may end well at last.
  expect(machine.run('third').state).toBe('queued');
  await machine.ags(['send', 'first', 'write: late.txt x']);
  await machine.until('third', ['ready', 'failed']);
  expect(machine.branch('third')).toEqual(expect.arrayContaining(['late.txt', 'b.txt']));
});

test('names that do not exist, are taken, or wait for each other are refused before anything starts', async () => {
  using machine = createAgentMachine(ONE);
  const says = async (goals: string, more: readonly string[] = []): Promise<unknown> => {
    const { code, stderr } = await start(machine, goals, more);
    return [code, stderr.split('\n')[0]];
  };
  expect(await says('- a\n- b (after: nosuch)\n')).toEqual([2, 'ags: Line 2: there is no goal or task called nosuch.']);
  expect(await says('- a (name: a, after: b)\n- b (name: b, after: a)\n')).toEqual([
    2,
    'ags: Line 1: goals wait for each other: a after b after a.',
  ]);
  expect(await says('- a (name: a)\n- b (after: a)\n', ['--attempts', '2'])).toEqual([
    2,
    'ags: a has 2 attempts, so no task can begin after it.',
  ]);
  machine.git('branch', 'ags/b');
  expect(await says('- a (name: a)\n- b (name: b)\n')).toEqual([2, 'ags: A task or branch named b already exists.']);
  expect(machine.tasks()).toEqual([]);
  const dry = await start(
    machine,
    '- One (name: one, after: two, max-time: 90m)\n- Two (name: two, agent: codex, model: big, max-turns: 5)\n',
    ['--dry-run', '--max-cost', '2'],
  );
  expect(dry.stdout).toBe(
    [
      'NAME  AGENT      LIMITS          AFTER  GOAL',
      'two   codex big  $2.00, 5 turns         Two',
      'one   demo       1h30m, $2.00    two    One',
      '',
    ].join('\n'),
  );
  expect(machine.tasks()).toEqual([]);
});

test('every state of the other task either begins the one that waits, or says how it goes on', () => {
  const goal = { base: 'base', baseRef: 'refs/heads/main' } as Goal;
  const result = { commit: 'work', files: 1, added: 1, removed: 0 };
  const begins = RUN_STATES.filter(
    (state) => 'begin' in judgeAfter({ goal, run: { state, result }, live: true }, 'a', 'b'),
  );
  expect(begins).toEqual(['ready', 'no-changes', 'merged']);
  const of = (state: 'ready' | 'no-changes', work: typeof result | null) =>
    judgeAfter({ goal, run: { state, result: work }, live: false }, 'a', 'b');
  expect([of('ready', result), of('no-changes', null)]).toEqual([
    { begin: { base: 'work', baseRef: 'refs/heads/main', origin: 'base' } },
    { begin: { base: 'base', baseRef: 'refs/heads/main' } },
  ]);
  expect(judgeAfter(null, 'a', 'b')).toEqual({
    why: 'a was removed or cannot be read. To start without it: ags continue --now b',
  });
  expect(judgeAfter({ goal, run: { state: 'running' }, live: false }, 'a', 'b')).toEqual({
    why: 'a was interrupted; this starts when it ends well (ags continue a). To start without it: ags continue --now b',
  });
});
