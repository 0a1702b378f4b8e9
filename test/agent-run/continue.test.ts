// test/agent-run/continue.test.ts: goals survive a crash: cleanup keeps them, and `ags continue` goes on with them.
// needs: sandbox
import { spawn } from 'node:child_process';
import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { waitUntilOver } from '../../src/agent-run/control.ts';
import { identityOf } from '../../src/lib/process/liveness.ts';
import { IS_ROOT, USUAL } from '../harness.ts';
import { createAgentMachine, type AgentMachine } from './place.ts';

/** Kills the runners as a power cut would: those that wait first, so that none takes a free place. */
async function crash(machine: AgentMachine, names: readonly string[]): Promise<void> {
  for (const name of names.toReversed()) process.kill(machine.run(name).runner.pid, 'SIGKILL');
  await expect
    .poll(async () => {
      const { tasks } = JSON.parse((await machine.ags(['list', '--json'])).stdout) as { tasks: { state: string }[] };
      return tasks.map(({ state }) => state);
    })
    .toEqual(names.map(() => 'interrupted'));
}

async function queueThree(machine: AgentMachine): Promise<void> {
  await machine.ags(['start', 'q1', 'wait: 600', '-a', 'demo', '-d', '--max-parallel', '1']);
  await machine.event('q1', 'agent.started');
  for (const name of ['q2', 'q3']) {
    await machine.ags(['start', name, `write: ${name}.txt done`, '-a', 'demo', '-d', '--max-parallel', '1']);
    await machine.event(name, 'run.waiting');
  }
}

test.each(USUAL)(
  'as %s: goals that were queued or under way when ags was killed are kept and continued',
  async (caller) => {
    using machine = createAgentMachine(caller);
    await queueThree(machine);
    await crash(machine, ['q1', 'q2', 'q3']);

    const list = (await machine.ags(['list'])).stdout;
    expect(list).toContain('Queued when ags was stopped. To go on: ags continue q2');
    expect(list).toContain('ags was stopped while the task ran. To go on: ags continue q1');
    const cleaned = await machine.ags(['cleanup']);
    for (const name of ['q1', 'q2', 'q3']) expect(cleaned.stdout).toContain(`ags continue ${name}`);
    expect(machine.tasks()).toEqual(['q1', 'q2', 'q3']);
    // A look at the work of a killed run brings it out, and makes the run a stopped one.
    await machine.ags(['diff', 'q2']);
    expect(machine.run('q2').state).toBe('stopped');
    await machine.ags(['cleanup']);
    expect(machine.tasks()).toEqual(['q1', 'q2', 'q3']);

    const all = await machine.ags(['continue', '--all']);
    expect(all).toMatchObject({ code: 0 });
    expect(all.stderr.split('\n')).toEqual([
      'ags: q1 continues. Follow it: ags logs -f q1',
      'ags: q2 starts. Follow it: ags logs -f q2',
      'ags: q3 starts. Follow it: ags logs -f q3',
      'ags: 3 tasks: 1 continued, 2 started.',
      '',
    ]);
    for (const name of ['q2', 'q3']) {
      expect((await machine.until(name, ['ready', 'failed'])).state).toBe('ready');
      expect(machine.git('show', `ags/${name}:${name}.txt`)).toBe('done\n');
    }
    expect((await machine.until('q1', ['ready', 'no-changes', 'failed'])).state).not.toBe('failed');
    expect((await machine.ags(['continue', '--all'])).stderr).toBe(
      'ags: no task was queued or under way when ags was stopped.\n',
    );
  },
);

test('a goal that never began is deleted only on request, and starts even if its workspace was half made', async () => {
  using machine = createAgentMachine('user');
  await queueThree(machine);
  await crash(machine, ['q1', 'q2', 'q3']);
  const refused = await machine.ags(['cleanup', '--all']);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain('These tasks have unreviewed changes or unfinished goals: q1 q2 q3');
  const { uid, stateDir } = machine;
  for (const dir of ['run', 'run/home']) {
    mkdirSync(join(stateDir, 'tasks/q2', dir));
    if (IS_ROOT) chownSync(join(stateDir, 'tasks/q2', dir), uid, uid);
  }
  const began = await machine.ags(['continue', 'q2', 'q3']);
  expect(began, began.stderr).toMatchObject({ code: 0 });
  for (const name of ['q2', 'q3']) expect((await machine.until(name, ['ready', 'failed'])).state).toBe('ready');
  expect(machine.events('q2').filter(({ type }) => type === 'message.sent')).toEqual([]);
  expect((await machine.ags(['cleanup', '--all', '--yes'])).stdout).toContain('interrupted, with an unfinished goal');
  expect(machine.tasks()).toEqual([]);
});

test('a task is over once its runner lets go of it', async () => {
  using machine = createAgentMachine('user');
  await machine.runDemo('work', 'write: a.txt x');
  const runner = spawn('sleep', ['600']);
  const identity = identityOf(runner.pid ?? 0);
  const at = (name: string): string => join(machine.stateDir, 'tasks/work', name);
  writeFileSync(at('run.json'), JSON.stringify({ ...machine.run('work'), runner: identity }));
  writeFileSync(at('lock'), JSON.stringify(identity));
  let over = false;
  const waiting = waitUntilOver(machine, 'work').then(() => (over = true));
  // The state alone says so at the first look.
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(over).toBe(false);
  runner.kill('SIGKILL');
  await waiting;
  expect((await machine.ags(['restart', 'work', '-d'])).code).toBe(0);
});
