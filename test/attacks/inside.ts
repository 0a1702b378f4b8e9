// test/attacks/inside.ts: every attempt of the tables from inside a sandbox. One sandbox runs them all; each is reported on its own.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CALLERS, createMachine, type Machine } from '../harness.ts';
import type { PodmanUser } from '../sandbox/podman-user.ts';
import { breaches } from '../../src/attack/table/attack.ts';
import { runInside, type Inside } from './run-inside.ts';
import { CONTROL } from '../../src/attack/table/files.ts';
import { INSIDE_ATTACKS } from '../../src/attack/table/table.ts';
import { createVictims, type Victims } from './victims.ts';

// doctor-attack.full.test.ts tries the attempts that need a host of their own.
const ATTACKS = [...INSIDE_ATTACKS.filter(({ needs }) => needs === undefined), CONTROL];
const CASES = CALLERS.flatMap((caller) => (['overlay', 'copy'] as const).map((workspace) => ({ caller, workspace })));

export interface Elsewhere {
  /** The machine's directory: an engine does not see the /tmp of the tests. */
  readonly disk?: string;
  readonly group?: string;
  /** An ordinary user that the caller has created on this machine. */
  readonly user?: () => PodmanUser;
  /** Lines about files that the engine itself writes on the host. */
  readonly ofEngine?: RegExp;
}

export function insideAttacks(flags: readonly string[], elsewhere?: Elsewhere): void {
  describe.each(CASES)(
    'as $caller, over a workspace of kind $workspace, an attacker cannot',
    ({ caller, workspace }) => {
      let machine: Machine;
      let victims: Victims;
      let inside: Inside;
      let touched: readonly string[];

      beforeAll(async () => {
        machine = createMachine(caller, { disk: elsewhere?.disk, user: elsewhere?.user?.() });
        victims = await createVictims(machine);
        inside = await runInside(
          machine,
          victims,
          ATTACKS,
          [...flags, '--workspace', workspace, '--limit', 'time=60s', '--limit', 'processes=200'],
          elsewhere?.group,
        );
        touched = victims.touched().filter((line) => elsewhere?.ofEngine?.test(line) !== true);
      });
      afterAll(async () => {
        await victims[Symbol.asyncDispose]();
        machine[Symbol.dispose]();
      });

      test.for(ATTACKS.map((attack, index) => [`${attack.id}: ${attack.what}`, attack, index] as const))(
        '%s',
        ([, attack, index]) => {
          expect(breaches(attack, inside.answers[index] ?? '', elsewhere !== undefined)).toEqual([]);
        },
      );

      test('touch anything of the host, or bring a secret out', () => {
        expect(touched).toEqual([]);
        expect(`${inside.stdout}${inside.stderr}${inside.answers.join('\n')}`).not.toContain(victims.word);
        expect(inside.code).toBe(0);
      });
    },
  );
}
