// test/attacks/claims.test.ts: the claims of `ags doctor --attack`: the host is judged when all attempts have ended, and a result holds
// only for sandboxes made like the attacked one.
// needs: sandbox
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { breaches, type Attack } from '../../src/attack/table/attack.ts';
import { FILE_ATTACKS } from '../../src/attack/table/files.ts';
import type { Engine } from '../../src/sandbox/engine/engine.ts';
import { judgeAll } from '../../src/attack/run-attack.ts';
import { planRun } from '../../src/run/plan-run.ts';
import { sandboxKey } from '../../src/run/sandbox-key.ts';
import { createMachine, IS_ROOT } from '../harness.ts';
import { contextOf } from './own-context.ts';
import { runInside } from './run-inside.ts';
import { createVictims } from './victims.ts';

test('a file that the last running attempt touches is noticed', async () => {
  const touched: string[] = [];
  const slow = async (): Promise<{ attacks: []; said: string }> => {
    await sleep(20);
    touched.push('sibling/private.txt: changed');
    return { attacks: [], said: 'CANARY-1' };
  };
  const quick = Promise.resolve({ attacks: [], said: '' });
  const stage = { touched: () => touched, word: 'CANARY-1' };
  expect(await judgeAll(stage, [quick, slow()])).toEqual([
    expect.objectContaining({
      id: 'fs-outside-untouched',
      verdict: 'not stopped',
      why: 'sibling/private.txt: changed; a secret came out',
    }),
  ]);
  expect(await judgeAll({ touched: () => [], word: 'CANARY-1' }, [quick])).toEqual([
    expect.objectContaining({ id: 'fs-outside-untouched', verdict: 'stopped' }),
  ]);
});

test('the key of a sandbox differs for each engine and each set of limits of control groups', async () => {
  using machine = createMachine(IS_ROOT ? 'root' : 'user');
  const context = contextOf(machine);
  const plan = await planRun(context, { backend: 'native' }, { live: false });
  const dir = mkdtempSync(join(tmpdir(), 'ags-key-'));
  const [socket, other] = [join(dir, 'a.sock'), join(dir, 'b.sock')];
  for (const path of [socket, other]) {
    writeFileSync(path, '');
    utimesSync(path, 1, 1);
  }
  const near: Engine = {
    name: 'docker',
    program: plan.host.programs.perl,
    options: [],
    env: {},
    socket,
    rootless: false,
    far: null,
  };
  const key = (engine: Engine | null, cgroupPlan = plan.host.cgroupPlan): string =>
    sandboxKey(context, { ...plan, host: { ...plan.host, engine, cgroupPlan } });
  try {
    const first = key(near);
    expect(key({ ...near })).toBe(first);
    const all = [
      first,
      key(null),
      key({ ...near, socket: other }),
      key({ ...near, rootless: true }),
      key({ ...near, socket: null, far: 'ssh://one' }),
      key({ ...near, socket: null, far: 'ssh://two' }),
      key(near, { kind: 'engine', holds: ['memory'] }),
      key(near, { kind: 'engine', holds: ['memory', 'pids'] }),
    ];
    // The engine was started anew.
    utimesSync(socket, 2, 2);
    all.push(key(near));
    expect(new Set(all).size).toBe(all.length);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('a home below /var/tmp, which is a link inside, is not mistaken for a foreign mount', async () => {
  using machine = createMachine(IS_ROOT ? 'root' : 'user', { disk: '/var/tmp' });
  await using victims = await createVictims(machine);
  const attack = FILE_ATTACKS.find(({ id }) => id === 'fs-writable-mounts') as Attack;
  const { answers } = await runInside(machine, victims, [attack], ['--backend', 'native']);
  expect(breaches(attack, answers[0] ?? '')).toEqual([]);
});
