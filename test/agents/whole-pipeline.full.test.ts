// test/agents/whole-pipeline.full.test.ts: real agents, a real sandbox, a real gateway: in a terminal, and with a key that is wrong. What they do with a
// goal is in test/e2e/agents.full.test.ts.
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { claude } from '../../src/agents/claude/claude.ts';
import { type Caller, IS_ROOT } from '../harness.ts';
import { DRIVEN } from './driven.ts';
import { programIn } from './programs.ts';
import { openRoad } from './whole-pipeline.ts';

/** Each once; one of them as root. */
const IN_TERMINALS = DRIVEN.map((driven, i) => {
  const caller: Caller = i === 0 ? 'root' : 'user';
  return { ...driven, caller, title: driven.agent.title };
});

beforeAll(() => {
  for (const { agent } of DRIVEN) programIn(agent);
}, 600_000);

// The model answers at the port of the real one, 443, which is root's to open.
describe.runIf(IS_ROOT)('with its real program', () => {
  test.each(IN_TERMINALS)(
    '$title as $caller works in a terminal of its own',
    { timeout: 240_000 },
    async ({ agent, caller, write, run }) => {
      await using road = await openRoad(agent, caller, (project) => [
        { say: 'I write.', call: write(project, 'hello.txt') },
        { say: 'I try.', call: run('echo forbidden > bad.txt') },
        { say: 'All of it is done.' },
      ]);
      const { machine, model } = road;
      const started = await road.ags(
        'start',
        'first',
        'Do the thing.',
        '--agent',
        agent.name,
        '--interactive',
        '--detach',
      );
      expect(started, started.stdout + started.stderr).toMatchObject({ code: 0 });
      while (!model.requests.some(({ turn }) => turn === 2)) await sleep(200);
      const last = model.requests.find(({ turn }) => turn === 2);
      expect(JSON.stringify(last?.body)).toContain('This is not wanted here.');
      expect(await road.ags('stop', 'first')).toMatchObject({ code: 0 });
      while (machine.git('branch', '--list', 'ags/first') === '') await sleep(200);
      expect(machine.git('ls-tree', '-r', '--name-only', 'ags/first').trim().split('\n')).toEqual([
        'README.md',
        'hello.txt',
        'src/a.txt',
      ]);
    },
  );

  // In which words each of them hears of it is in its own tests.
  test('who has a wrong key is told how to sign in', { timeout: 240_000 }, async () => {
    await using road = await openRoad(claude, 'user', () => [{ fail: { status: 401, message: 'no such key' } }]);
    const started = await road.ags('start', 'first', 'Do the thing.', '--agent', claude.name);
    expect(started.code).not.toBe(0);
    expect(started.stdout + started.stderr, started.stdout + started.stderr).toContain(`ags auth ${claude.name}`);
  });
});
