// test/attacks/mutation/engine-mutation.proof.test.ts: removes the protections of nested Docker, and shows two things: the check from
// outside refuses to start it, where it can see the protection; and if it starts anyway, an attempt of the table succeeds.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect } from 'node:net';
import { breaches, type Attack } from '../../../src/attack/table/attack.ts';
import { ENGINE_ATTACKS } from '../../../src/attack/table/engine.ts';
import { ENGINE } from '../../conformance/docker-backend.ts';
import { HAS_ENGINE } from '../../conformance/engine.ts';
import { createMachine, type Machine } from '../../harness.ts';
import { ALL_ATTACKS, GROUPS, LET_GO, NEVER, SEEN, TOLD_BESIDES, type EngineMutant } from './engine-mutants.ts';
import { planNested } from '../../../src/sandbox/nested/nested-engine.ts';
import { nestedOptions } from '../../../src/run/nested-docker-options.ts';
import { contextOf } from '../own-context.ts';
import { ask, attackEngine, LIMITS, startEngine } from './engine-stage.ts';
import { sourceWith } from './mutated-source.ts';
import { createVictims, type Victims } from '../victims.ts';

/** AGS_EACH_MUTANT tries every mutant alone, in a daemon of its own. */
const ENGINES = process.env['AGS_EACH_MUTANT'] === undefined ? GROUPS : GROUPS.flat().map((one) => [one]);
const attacksOf = (mutants: readonly EngineMutant[]): typeof ALL_ATTACKS =>
  ALL_ATTACKS.filter(({ id }) => mutants.some(({ by }) => by === id));

describe.runIf(HAS_ENGINE && process.getuid?.() === 0)('nested Docker', () => {
  let machine: Machine;
  let victims: Victims;
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'ags-engine-mutant-')));
  const unnoticed = new Set(GROUPS.flat().map(({ name }) => name));
  beforeAll(async () => {
    // The host's engine does not see the tests' /tmp, and /var/tmp is /tmp inside.
    machine = createMachine('root', { disk: '/var/lib' });
    victims = await createVictims(machine);
    // For mutants that show them to the daemon.
    execFileSync('mknod', [join(machine.root, 'disk'), 'b', '7', '250']);
    chmodSync(join(machine.home, 'agent.sock'), 0o777);
  });
  afterAll(async () => {
    await victims[Symbol.asyncDispose]();
    machine[Symbol.dispose]();
    rmSync(scratch, { recursive: true, force: true });
  });

  test('unchanged, stops each of these attempts', async () => {
    const found = await attackEngine(sourceWith([], scratch), { machine, victims }, attacksOf(GROUPS.flat()));
    expect(found).toEqual([]);
  });

  test.for(ENGINES.map((mutants) => [mutants.map(({ name }) => name).join('", "'), mutants] as const))(
    'without "%s", attempts succeed',
    async ([, mutants]) => {
      const use = sourceWith([LET_GO, ...mutants.flatMap(({ pieces }) => pieces)], scratch);
      const found = await attackEngine(use, { machine, victims }, attacksOf(mutants));
      const missed = mutants.filter(
        ({ by, finds }) =>
          !found.some((line) => line.startsWith(`${by}: `) && finds.test(line.slice(by.length + ': '.length))),
      );
      for (const { name } of mutants) if (!missed.some((one) => one.name === name)) unnoticed.delete(name);
      expect(
        missed.map(({ name }) => name),
        found.join('\n'),
      ).toEqual([]);
    },
  );

  test("in place of which the host's engine answers is noticed", async () => {
    const attack = ENGINE_ATTACKS.find(({ id }) => id === 'engine-others') as Attack;
    const [answer = ''] = await ask(() => Promise.resolve(connect(ENGINE.socket ?? '')), { machine, victims }, [
      attack,
    ]);
    expect(breaches(attack, answer)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^name = of another machine/)]),
    );
  });

  test('every protection is missed by an attempt, and every attempt succeeds once or cannot', () => {
    expect([...unnoticed]).toEqual([]);
    const seen = GROUPS.flat().map(({ by }) => by);
    expect(ENGINE_ATTACKS.map(({ id }) => id).filter((id) => !seen.includes(id))).toEqual(Object.keys(NEVER));
  });

  test('gets no engine option that is neither removed here nor listed as harmless', () => {
    const config = { docker: { enabled: true, registries: [] }, limits: LIMITS, network: { mode: 'on' } };
    const context = { ...contextOf(machine), env: { ...process.env } };
    const { argv } = planNested(
      nestedOptions(context, config as unknown as Parameters<typeof nestedOptions>[1], 'mutant'),
    );
    const told = new Set(argv.slice(0, argv.indexOf('-e')).filter((word) => /^--[a-z]/.test(word)));
    const taken = GROUPS.flat().flatMap(({ pieces }) => pieces.flatMap(([, from]) => from.match(/--[a-z-]+/g) ?? []));
    expect(told.size).toBeGreaterThan(15);
    expect([...told].filter((option) => !taken.includes(option) && TOLD_BESIDES[option] === undefined)).toEqual([]);
  });

  test.for(SEEN.map((one) => [one.says, one] as const))('does not start if %s', async ([, one]) => {
    const started = startEngine(sourceWith(one.pieces, scratch), { machine, victims });
    await expect(started.then((engine) => engine.close())).rejects.toThrow(one.says);
  });
});
