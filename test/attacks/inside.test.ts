// test/attacks/inside.test.ts: every attempt of the tables, from inside a sandbox, as root and as a user, over both kinds of
// workspace. One sandbox runs them all; each is reported by itself.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CALLERS, createMachine, type Machine } from '../harness.ts';
import { breaches } from './attack.ts';
import { runInside, type Inside } from './run-inside.ts';
import { CONTROL, FILE_ATTACKS } from './table-files.ts';
import { IDENTITY_ATTACKS } from './table-identity.ts';
import { KERNEL_ATTACKS } from './table-kernel.ts';
import { NETWORK_ATTACKS } from './table-network.ts';
import { createVictims, type Victims } from './victims.ts';

const ATTACKS = [...FILE_ATTACKS, ...KERNEL_ATTACKS, ...NETWORK_ATTACKS, ...IDENTITY_ATTACKS, CONTROL];
const CASES = CALLERS.flatMap((caller) => (['overlay', 'copy'] as const).map((workspace) => ({ caller, workspace })));

describe.each(CASES)('as $caller, over a workspace of kind $workspace, an attacker cannot', ({ caller, workspace }) => {
  let machine: Machine;
  let victims: Victims;
  let inside: Inside;
  let touched: readonly string[];

  beforeAll(async () => {
    machine = createMachine(caller);
    victims = await createVictims(machine);
    inside = await runInside(machine, victims, ATTACKS, [
      '--workspace',
      workspace,
      '--limit',
      'time=60s',
      '--limit',
      'processes=200',
    ]);
    touched = victims.touched();
  });
  afterAll(async () => {
    await victims[Symbol.asyncDispose]();
    machine[Symbol.dispose]();
  });

  test.for(ATTACKS.map((attack, index) => [`${attack.id}: ${attack.what}`, attack, index] as const))(
    '%s',
    ([, attack, index]) => {
      expect(breaches(attack, inside.answers[index] ?? '')).toEqual([]);
    },
  );

  test('touch anything of the host, or bring a secret out', () => {
    expect(touched).toEqual([]);
    expect(`${inside.stdout}${inside.stderr}${inside.answers.join('\n')}`).not.toContain(victims.word);
    expect(inside.code).toBe(0);
  });
});
