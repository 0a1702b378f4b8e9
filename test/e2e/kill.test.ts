// test/e2e/kill.test.ts: kill -9 at any moment. Nothing of the sandbox stays, nothing of the project is lost.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine } from '../harness.ts';
import { leftovers } from './leftovers.ts';

const ROUNDS = 25;

describe.each(CALLERS)('as %s', (caller) => {
  test('a runner killed at any moment of its start leaves no process and no mount, and the next command works', async () => {
    using machine = createMachine(caller);
    await machine.ags(['exec', '--', 'true']);
    const begun = Date.now();
    await machine.ags(['exec', '--', 'true']);
    const wholeMs = Date.now() - begun;
    const left: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const child = machine.start(['exec', '--', 'sleep', '77777']);
      await sleep((wholeMs * 1.3 * round) / ROUNDS);
      child.kill('SIGKILL');
      left.push(...(await leftovers(machine)));
    }
    expect(left).toEqual([]);
    expect(machine.read('src/a.txt')).toBe('one\ntwo\nthree\n');
    expect((await machine.ags(['cleanup', '--all', '--yes'])).code).toBe(0);
    // A directory without a task file may belong to a start that is just under way: it is left alone for a minute.
    const whole = machine.tasks().filter((id) => existsSync(join(machine.stateDir, 'tasks', id, 'task.json')));
    expect(whole).toEqual([]);
    expect((await machine.ags(['exec', '--', 'echo', 'fine'])).stdout).toBe('fine\n');
  }, 240_000);

  test('what a killed run had written can still be reviewed', async () => {
    using machine = createMachine(caller);
    const child = machine.start(['exec', '--', 'sh', '-c', 'echo kept > made.txt; echo written; sleep 77777']);
    await new Promise((resolve) => child.stdout?.once('data', resolve));
    child.kill('SIGKILL');
    expect(await leftovers(machine)).toEqual([]);
    expect((await machine.ags(['list'])).stdout).toContain('interrupted');
    expect((await machine.ags(['review', '@', '--accept-all'])).code).toBe(0);
    expect(machine.read('made.txt')).toBe('kept\n');
  });
});
