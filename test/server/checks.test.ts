// test/server/checks.test.ts: starts, follows and stops checks over the API; a dying server leaves none behind.
// needs: sandbox
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ApiError, ApiTask, ApiTasks } from '../../src/protocol/api/api.ts';
import type { ApiChanges, Merged } from '../../src/protocol/api/review.ts';
import type { ApiChecks } from '../../src/protocol/api/checks.ts';
import { until } from '../exec/given.ts';
import { USUAL } from '../harness.ts';
import { processes, unfinished } from '../merge/checks/place.ts';
import { createServerMachine, type RunningServer, type ServerMachine } from './place.ts';

const FILES = {
  'README.md': '# project\n',
  'ags.yaml': "checks: ['! grep -r BROKEN --include=*.txt .']\n",
  'package.json': '{"scripts":{"lint":"x"}}\n',
};
const EDIT = 'write: fine.txt hello // write: broken.txt BROKEN';

async function withTask(machine: ServerMachine): Promise<{ id: string; fine: number; broken: number }> {
  await machine.runDemo('work', EDIT);
  const { json } = await machine.server.call<ApiChanges>('GET', '/api/tasks/work/changes');
  const number = (path: string): number => json.files.find((one) => one.path === path)?.n ?? -1;
  return { id: json.id, fine: number('fine.txt'), broken: number('broken.txt') };
}

const CHECKS = '/api/tasks/work/checks';
const read = async (server: RunningServer): Promise<ApiChecks> => (await server.call<ApiChecks>('GET', CHECKS)).json;
const row = async (server: RunningServer): Promise<ApiTask['checks']> =>
  (await server.call<ApiTasks>('GET', '/api/tasks')).json.tasks.find(({ id }) => id === 'work')?.checks ?? null;

async function ended(server: RunningServer): Promise<NonNullable<ApiChecks['last']>> {
  for (;;) {
    const { last } = await read(server);
    if (last !== null && last.state !== 'running') return last;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe.each(USUAL)('as %s', (caller) => {
  test('checks run on the selection, and a trial merge knows whether they covered exactly that', async () => {
    using machine = await createServerMachine(caller, FILES);
    const { server } = machine;
    const { id, fine, broken } = await withTask(machine);
    expect(await read(server)).toEqual({
      configured: [{ name: '! grep -r BROKEN --include=*.txt .', run: '! grep -r BROKEN --include=*.txt .' }],
      suggested: [],
      required: false,
      last: null,
    });
    expect(await row(server)).toBe(null);
    const all = { changes: id, files: [{ n: fine }, { n: broken }] };
    const part = { changes: id, files: [{ n: fine }] };
    const trial = async (wish: object): Promise<Merged> =>
      (await server.call<Merged>('POST', '/api/tasks/work/merge', { ...wish, dryRun: true })).json;
    expect(await trial(all)).toMatchObject({ checked: null, tree: expect.stringMatching(/^[0-9a-f]{40}$/) });

    const started = await server.call<ApiChecks>('POST', CHECKS, all);
    expect([started.status, started.json.last?.state]).toEqual([200, 'running']);
    expect(await ended(server)).toMatchObject({
      state: 'failed',
      tree: (await trial(all)).tree,
      branch: 'main',
      files: 2,
      checks: [{ state: 'failed', exitCode: 1, output: './broken.txt:BROKEN\n', cut: false }],
    });
    expect(await row(server)).toMatchObject({ state: 'failed', line: './broken.txt:BROKEN', passed: 0, of: 1 });
    expect([(await trial(all)).checked, (await trial(part)).checked]).toEqual(['failed', null]);
    await server.call('POST', CHECKS, part);
    expect(await ended(server)).toMatchObject({ state: 'passed', tree: (await trial(part)).tree });
    expect([(await trial(all)).checked, (await trial(part)).checked]).toEqual([null, 'passed']);
    expect(unfinished(machine)).toEqual([]);
    // The changes differ from those shown, so the checks would cover unseen files.
    const stale = await server.call<ApiError>('POST', CHECKS, { ...part, changes: '0'.repeat(40) });
    expect([stale.status, stale.json.error.code]).toEqual([409, 'project.changed']);
  });

  test('required checks cannot be skipped by a merge over the API', async () => {
    using machine = await createServerMachine(caller, {
      ...FILES,
      'ags.yaml': `${FILES['ags.yaml']}merge: {check: true}\n`,
    });
    const { server } = machine;
    const { id, fine } = await withTask(machine);
    const wish = { changes: id, files: [{ n: fine }] };
    const refused = await server.call<ApiError>('POST', '/api/tasks/work/merge', wish);
    expect([refused.status, refused.json.error.code]).toEqual([422, 'checks.failed']);
    const needed = async (): Promise<boolean> =>
      (await server.call<Merged>('POST', '/api/tasks/work/merge', { ...wish, dryRun: true })).json.needsChecks;
    expect(await needed()).toBe(true);
    await server.call('POST', CHECKS, { ...wish, commands: ['true'] });
    expect((await ended(server)).state).toBe('passed');
    expect((await server.call('POST', '/api/tasks/work/merge', wish)).status).toBe(422);
    expect(await needed()).toBe(true);
    expect(machine.git('log', '--format=%s').trim()).toBe('first');
    await server.call('POST', CHECKS, wish);
    await ended(server);
    expect(await needed()).toBe(false);
    expect((await server.call('POST', '/api/tasks/work/merge', wish)).status).toBe(200);
    expect(machine.has('fine.txt')).toBe(true);
  });

  test('one check run at a time; stopping ends it, wherever it started', async () => {
    using machine = await createServerMachine(caller, { ...FILES, 'ags.yaml': '' });
    const { server } = machine;
    const { id, fine } = await withTask(machine);
    expect(await read(server)).toMatchObject({ configured: [], suggested: ['npm run lint'] });
    const wish = { changes: id, files: [{ n: fine }] };
    const none = await server.call<ApiError>('POST', CHECKS, wish);
    expect([none.status, none.json.error]).toMatchObject([
      400,
      { code: 'checks.none', details: { suggestions: ['npm run lint'] } },
    ]);
    const slow = { ...wish, commands: ['echo begun; sleep 6041', 'true'] };
    expect((await server.call('POST', CHECKS, slow)).status).toBe(200);
    await until(() => processes().includes('sleep 6041'));
    expect(await row(server)).toMatchObject({ state: 'running', name: 'echo begun; sleep 6041', passed: 0, of: 2 });
    await expect
      .poll(async () => (await read(server)).last?.checks[0])
      .toMatchObject({ state: 'running', output: 'begun\n' });
    const second = await server.call<ApiError>('POST', CHECKS, slow);
    expect([second.status, second.json.error.code]).toEqual([409, 'task.busy']);
    const other = await machine.serve();
    expect((await other.call('POST', `${CHECKS}/stop`)).json).toEqual({ stopped: true });
    expect(processes()).not.toContain('sleep 6041');
    expect(await ended(server)).toMatchObject({ state: 'ended', reason: 'Stopped.', checks: [{ state: 'ended' }, {}] });
    expect(unfinished(machine)).toEqual([]);
    expect((await server.call('POST', `${CHECKS}/stop`)).json).toEqual({ stopped: false });
  });

  test('a stopped or killed server leaves no checks running, and no client sees them as running', async () => {
    using machine = await createServerMachine(caller, FILES);
    const { id, fine } = await withTask(machine);
    const wish = { changes: id, files: [{ n: fine }], commands: ['echo begun; sleep 6042'] };
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const server = await machine.serve();
      expect((await server.call('POST', CHECKS, wish)).status).toBe(200);
      await until(() => processes().includes('sleep 6042'));
      expect(await row(machine.server)).toMatchObject({ state: 'running' });
      await server.stop(signal);
      await until(() => !processes().includes('sleep 6042'));
      expect(await row(machine.server)).toMatchObject({ state: 'ended' });
      expect((await read(machine.server)).last).toMatchObject({ state: 'ended' });
      if (signal === 'SIGTERM') expect(unfinished(machine)).toEqual([]);
    }
    expect((await machine.server.call('POST', CHECKS, { ...wish, commands: ['true'] })).status).toBe(200);
    expect((await ended(machine.server)).state).toBe('passed');
    expect(unfinished(machine)).toEqual([]);
    expect(existsSync(join(machine.stateDir, 'tasks/work/checks.lock'))).toBe(false);
    expect(readdirSync(join(machine.stateDir, 'tasks/work/checks'))).toContain('0.log');
  });
});
