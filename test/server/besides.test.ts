// test/server/besides.test.ts: files of two tasks are checked, merged and undone as one commit.
// needs: sandbox
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiError } from '../../src/protocol/api/api.ts';
import type { ApiChanges, Merged } from '../../src/protocol/api/review.ts';
import type { ApiChecks } from '../../src/protocol/api/checks.ts';
import { CALLERS, type Caller } from '../harness.ts';
import { createServerMachine, type ServerMachine } from './place.ts';

const FILES = {
  'README.md': '# project\n',
  'ags.yaml': "checks: ['test -e one.txt && test -e two.txt']\nmerge: {check: true}\n",
};
type Selection = { changes: string; files: { n: number; hunks?: number[] }[] };

const machines = new Map<Caller, ServerMachine>();
beforeAll(async () => {
  for (const caller of CALLERS) {
    const machine = await createServerMachine(caller, FILES);
    machines.set(caller, machine);
    await Promise.all([
      machine.runDemo('one', 'write: one.txt 1 // write: shared.txt of one'),
      machine.runDemo('two', 'write: two.txt 2 // write: shared.txt of two'),
    ]);
  }
}, 120_000);
afterAll(() => {
  for (const machine of machines.values()) machine[Symbol.dispose]();
});

async function chosen(machine: ServerMachine, task: string, ...paths: string[]): Promise<Selection> {
  const { json } = await machine.server.call<ApiChanges>('GET', `/api/tasks/${task}/changes`);
  return { changes: json.id, files: json.files.filter(({ path }) => paths.includes(path)).map(({ n }) => ({ n })) };
}

describe.each(CALLERS)('as %s', (caller) => {
  const given = (): ServerMachine => machines.get(caller) as ServerMachine;
  const merge = <T>(body: object) => given().server.call<T>('POST', '/api/tasks/one/merge', body);

  test('a selection with wrong names or ids is refused, and nothing is merged', async () => {
    const machine = given();
    const one = await chosen(machine, 'one', 'one.txt');
    const two = await chosen(machine, 'two', 'two.txt');
    const code = async (besides: object): Promise<unknown> =>
      (await merge<ApiError>({ ...one, besides })).json.error.code;
    expect(await code({ ...two, task: 'one' })).toBe('usage.invalid');
    expect(await code({ ...two, task: 'missing' })).toBe('task.not-found');
    expect(await code({ ...two, task: '../one' })).toBe('request.invalid');
    expect(await code({ ...two, task: 'two', changes: one.changes })).toBe('project.changed');
    expect(await code({ ...two, task: 'two', files: [{ n: 7 }] })).toBe('path.not-found');
    expect(await code({ ...two, task: 'two', files: two.files.map(({ n }) => ({ n, hunks: [0] })) })).toBe(
      'usage.invalid',
    );
    const both = { ...one, besides: { ...two, task: 'two' } };
    expect((await merge<ApiError>({ ...both, keepCommits: true })).json.error.code).toBe('usage.invalid');
    // Both tasks changed the file differently; the server reports it before the merge.
    const shared = { ...(await chosen(machine, 'two', 'shared.txt')), task: 'two' };
    const conflict = await merge<Merged>({
      ...(await chosen(machine, 'one', 'shared.txt')),
      besides: shared,
      dryRun: true,
    });
    expect(conflict.json).toMatchObject({ conflicts: ['shared.txt'], problem: expect.stringContaining('two') });
    expect(machine.git('log', '--format=%s').trim()).toBe('first');
  });

  test('a selection from two tasks is checked as one tree, becomes one commit, and is undone together', async () => {
    const machine = given();
    const { server } = machine;
    const one = await chosen(machine, 'one', 'one.txt');
    const both = { ...one, besides: { ...(await chosen(machine, 'two', 'two.txt')), task: 'two' } };
    const trial = async (wish: object): Promise<Merged> => (await merge<Merged>({ ...wish, dryRun: true })).json;
    expect(await trial(both)).toMatchObject({ files: 2, problem: null, needsChecks: true });
    expect((await merge<ApiError>(both)).json.error.code).toBe('checks.failed');

    const checks = async (wish: object): Promise<string | undefined> => {
      await server.call('POST', '/api/tasks/one/checks', wish);
      const read = async (): Promise<string | undefined> =>
        (await server.call<ApiChecks>('GET', '/api/tasks/one/checks')).json.last?.state;
      await expect.poll(read, { timeout: 60_000 }).not.toBe('running');
      return read();
    };
    // The result for both does not count for one alone.
    expect(await checks(both)).toBe('passed');
    expect([(await trial(both)).needsChecks, (await trial(one)).needsChecks]).toEqual([false, true]);

    expect((await merge(both)).status).toBe(200);
    expect([machine.read('one.txt'), machine.read('two.txt'), machine.has('shared.txt')]).toEqual([
      '1\n',
      '2\n',
      false,
    ]);
    expect(machine.git('rev-list', '--count', 'HEAD').trim()).toBe('2');
    expect((await server.call('POST', '/api/tasks/one/undo')).status).toBe(200);
    expect([machine.has('one.txt'), machine.has('two.txt'), machine.git('status', '--porcelain')]).toEqual([
      false,
      false,
      '',
    ]);
  });

  test('two requests that name the same tasks in different orders do not deadlock', async () => {
    const machine = given();
    const one = await chosen(machine, 'one', 'one.txt');
    const two = await chosen(machine, 'two', 'two.txt');
    const ask = (first: string, wish: object): Promise<{ status: number }> =>
      machine.server.call('POST', `/api/tasks/${first}/merge`, { ...wish, dryRun: true });
    const answers = await Promise.all(
      Array.from({ length: 4 }, (_, i) =>
        i % 2 === 0
          ? ask('one', { ...one, besides: { ...two, task: 'two' } })
          : ask('two', { ...two, besides: { ...one, task: 'one' } }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(4).fill(200));
  });
});
