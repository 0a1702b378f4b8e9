// test/agent-run/kill.full.test.ts: kills runners at random moments. Nothing is lost and nothing keeps running.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { readEvents } from '../../src/store/events.ts';
import { USUAL } from '../harness.ts';
import { createAgentMachine } from './place.ts';

const ROUNDS = 8;

test.each(USUAL)(
  'as %s: a task whose runner was killed at any moment can be read, continued and removed',
  async (caller) => {
    using machine = createAgentMachine(caller);
    machine.git('config', 'user.name', 'Dev');
    machine.git('config', 'user.email', 'dev@example.test');
    for (let round = 0; round < ROUNDS; round++) {
      const name = `cut-${round}`;
      const started = await machine.ags([
        'start',
        name,
        'write: a.txt one // commit: One // write: b.txt two // say: written',
        '-a',
        'demo',
        '-d',
      ]);
      expect(started.code, started.stderr).toBe(0);
      // From before the start to after the end: later rounds wait longer.
      await sleep((round / ROUNDS) * 1500 + Math.random() * 120);
      const { runner } = machine.run(name);
      if (existsSync(`/proc/${runner.pid}`)) process.kill(runner.pid, 'SIGKILL');
      await gone(runner.pid);
      // The kernel ends the sandbox with its runner, a moment later.
      for (let left = 1000; orphans(name).length > 0 && left > 0; left--) await sleep(20);
      expect(orphans(name)).toEqual([]);
      const { state } = machine.run(name);
      expect((await machine.ags(['show', name])).code).toBe(0);
      const diff = await machine.ags(['diff', name, '--name-only']);
      if (machine.events(name).some((event) => event.type === 'agent.said')) {
        expect(diff, `${state}: ${diff.stderr}`).toMatchObject({ code: 0, stdout: 'a.txt\nb.txt\n' });
        expect(machine.git('show', `ags/${name}:b.txt`)).toBe('two\n');
      }
      expect(readEvents(join(machine.stateDir, 'tasks', name, 'events.jsonl')).brokenAt).toBe(null);
      // The task continues or says why it cannot.
      const sent = await machine.ags(['send', name, 'write: c.txt three']);
      if (sent.code === 0) {
        expect(await machine.until(name, ['ready', 'failed', 'stopped'])).toMatchObject({ state: 'ready' });
        await machine.event(name, 'run.ended', (event) => event['state'] === 'ready');
        expect(machine.git('show', `ags/${name}:c.txt`)).toBe('three\n');
      } else expect(sent.stderr).toContain('never started');
      expect((await machine.ags(['rm', '--yes', name])).code).toBe(0);
    }
    expect(machine.git('for-each-ref', 'refs/heads/ags')).toBe('');
    expect(machine.git('fsck', '--no-dangling')).toBe('');
    expect(machine.git('status', '--porcelain')).toBe('');
    expect(readdirSync(join(machine.stateDir, 'tasks'))).toEqual([]);
  },
);

async function gone(pid: number): Promise<void> {
  for (let left = 1000; existsSync(`/proc/${pid}/exe`) && left > 0; left--) await sleep(20);
}

/** Processes of the sandbox, found by the task's name in their environment. */
function orphans(name: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`AGS_TASK=${name}`);
    } catch {
      return false;
    }
  });
}
