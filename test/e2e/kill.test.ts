// test/e2e/kill.test.ts: kill -9 at any moment. Nothing of the sandbox stays, nothing of the project is lost.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { CALLERS, createMachine } from '../harness.ts';
import { leftovers, sandboxProcesses } from './leftovers.ts';

describe.each(CALLERS)('as %s', (caller) => {
  test('x', async () => {
    using machine = createMachine(caller);
    await machine.ags(['exec', '--', 'true']);
    const begun = Date.now();
    await machine.ags(['exec', '--', 'true']);
    const whole = Date.now() - begun;
    console.log('whole', whole);
    let strays = 0;
    for (let i = 0; i < 100; i++) {
      const child = machine.start(['exec', '--', 'sleep', '77777']);
      await sleep((whole * 1.2 * i) / 100);
      child.kill('SIGKILL');
      await sleep(60);
      const left = await leftovers(machine, 700);
      if (left.length > 0) {
        console.log(i, Math.round((whole * 1.2 * i) / 100), left.join('\n'));
        strays++;
        for (const one of sandboxProcesses(machine)) process.kill(Number(one.split(' ')[0]), 'SIGKILL');
      }
    }
    console.log(caller, 'strays', strays, 'of 100', machine.tasks().length);
  }, 300_000);
});
