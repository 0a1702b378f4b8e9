// test/agents/whole-pipeline.full.test.ts: real agents in a real sandbox with a real gateway: in a terminal, and with a wrong key.
// test/e2e/agents.full.test.ts tests their work on a goal.
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { claude } from '../../src/agents/claude/claude.ts';
import { type Caller, IS_ROOT } from '../harness.ts';
import { DRIVEN } from './driven.ts';
import { programIn } from './programs.ts';
import { startPipeline } from './whole-pipeline.ts';

/** Each agent once; the first as root. */
const IN_TERMINALS = DRIVEN.map((driven, i) => {
  const caller: Caller = i === 0 ? 'root' : 'user';
  return { ...driven, caller, title: driven.agent.title };
});

beforeAll(() => {
  for (const { agent } of DRIVEN) programIn(agent);
}, 600_000);

// The model listens on port 443, like the real one, which needs root.
describe.runIf(IS_ROOT)('with its real program', () => {
  test.each(IN_TERMINALS)(
    '$title as $caller works in a terminal',
    { timeout: 240_000 },
    async ({ agent, caller, write, run }) => {
      await using pipeline = await startPipeline(agent, caller, (project) => [
        { say: 'I write.', call: write(project, 'hello.txt') },
        { say: 'I try.', call: run('echo forbidden > bad.txt') },
        { say: 'All of it is done.' },
      ]);
      const { machine, model } = pipeline;
      const started = await pipeline.ags(
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
      expect(await machine.until('first', ['needs-you'])).toMatchObject({ needs: 'prompt' });
      expect(await pipeline.ags('stop', 'first')).toMatchObject({ code: 0 });
      while (machine.git('branch', '--list', 'ags/first') === '') await sleep(200);
      expect(machine.git('ls-tree', '-r', '--name-only', 'ags/first').trim().split('\n')).toEqual([
        'README.md',
        'hello.txt',
        'src/a.txt',
      ]);
    },
  );

  test('an agent with a wrong key tells the user how to sign in', { timeout: 240_000 }, async () => {
    await using pipeline = await startPipeline(claude, 'user', () => [
      { fail: { status: 401, message: 'no such key' } },
    ]);
    const started = await pipeline.ags('start', 'first', 'Do the thing.', '--agent', claude.name);
    expect(started.code).not.toBe(0);
    expect(started.stdout + started.stderr, started.stdout + started.stderr).toContain(`ags auth ${claude.name}`);
  });
});
