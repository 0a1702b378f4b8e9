// test/attacks/neighbours.test.ts: two sandboxes of one user, at the same time and one after the other, do not find each other.
// needs: sandbox
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ChildProcess } from 'node:child_process';
import { CALLERS, createMachine, type Machine } from '../harness.ts';
import { breaches } from '../../src/attack/table/attack.ts';
import { LASTING_NEIGHBOUR_ATTACKS, LIVE_NEIGHBOUR_ATTACKS, NEIGHBOUR } from '../../src/attack/table/neighbours.ts';
import { startReady } from './host-view.ts';
import { runInside, type Inside } from './run-inside.ts';
import { createVictims, type Victims } from './victims.ts';

const LIVE = [...LIVE_NEIGHBOUR_ATTACKS, ...LASTING_NEIGHBOUR_ATTACKS];
const LATER = LASTING_NEIGHBOUR_ATTACKS;

describe.each(CALLERS)('as %s, a task does not find', (caller) => {
  let machine: Machine;
  let victims: Victims;
  let neighbour: ChildProcess | undefined;
  let [live, later, fresh]: readonly (Inside | null)[] = [null, null, null];

  beforeAll(async () => {
    machine = createMachine(caller);
    victims = await createVictims(machine);
    const other = await startReady(machine, ['perl', '-e', NEIGHBOUR], ['--name', 'neighbour']);
    neighbour = other;
    live = await runInside(machine, victims, LIVE);
    const ended = new Promise((resolve) => other.on('close', resolve));
    other.kill('SIGTERM');
    await ended;
    later = await runInside(machine, victims, LATER);
    fresh = await runInside(machine, victims, LATER, ['--name', 'neighbour']);
  });
  afterAll(async () => {
    neighbour?.kill('SIGKILL');
    await victims[Symbol.asyncDispose]();
    machine[Symbol.dispose]();
  });

  test.for(LIVE.map((attack, i) => [attack.what, attack, i] as const))('its neighbour: %s', ([, attack, i]) => {
    expect(breaches(attack, live?.answers[i] ?? '')).toEqual([]);
  });
  test.for(LATER.map((attack, i) => [attack.what, attack, i] as const))(
    'files of an earlier task (A159): %s',
    ([, attack, i]) => {
      expect(breaches(attack, later?.answers[i] ?? '')).toEqual([]);
    },
  );
  test.for(LATER.map((attack, i) => [attack.what, attack, i] as const))(
    'files of an earlier task of the same name (A159): %s',
    ([, attack, i]) => {
      expect(breaches(attack, fresh?.answers[i] ?? '')).toEqual([]);
    },
  );
  test('anything of the host', () => {
    expect(victims.touched()).toEqual([]);
  });
});
