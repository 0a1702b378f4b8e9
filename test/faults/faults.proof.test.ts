// test/faults/faults.proof.test.ts: kill -9, frozen processes, full disks, changed clocks and dead origins, at moments that a seed chooses.
// Nothing that was done is lost or doubled, nothing is left behind, and the next command works.
// `npm run faults` plays hundreds of rounds with a new seed; `npm run test:proof` plays a few with a fixed one. The seed is printed:
// AGS_FAULT_SEED repeats its choices, AGS_FAULT_ROUND plays one round.
import { afterAll, describe, expect, test } from 'vitest';
import { HAS_ENGINE } from '../conformance/engine.ts';
import { CALLERS, type Caller } from '../harness.ts';
import { createPodmanUser, HAS_PODMAN, type PodmanUser } from '../sandbox/podman-user.ts';
import { ACTS, ENGINE_ACTS } from './acts.ts';
import { createDice } from './dice.ts';
import { createGround, type Engine } from './ground.ts';
import { createLedger, playRound, type Told } from './rounds.ts';

const SEED = process.env['AGS_FAULT_SEED'] ?? 'always';
const ROUNDS = Number(process.env['AGS_FAULT_ROUNDS'] ?? 6);
/** The round number selects the act, so all acts get a turn; a seeded start varies the acts of short runs. */
const FIRST = Math.floor(createDice(SEED).share() * 1000);
const ONLY = process.env['AGS_FAULT_ROUND'];
const PATIENCE_MS = 60_000 + ROUNDS * 60_000;

const played: string[] = [];
afterAll(() => console.log(`faults: AGS_FAULT_SEED=${SEED} AGS_FAULT_ROUNDS=${ROUNDS}\n${played.join('\n')}`));

const lineOf = (caller: string, { round, act, fault, atMs, met }: Told): string =>
  `  ${caller} ${round}: ${act}, ${fault} after ${atMs} ms${met ? '' : ' (hit no process)'}`;

interface Place {
  readonly engine?: Engine;
  readonly user?: PodmanUser | undefined;
}

async function play(caller: Caller, rounds: readonly number[], { engine, user }: Place = {}): Promise<void> {
  if (rounds.length === 0) return;
  await using ground = await createGround(caller, engine, user);
  const ledger = createLedger(ground);
  const tag = `f${process.pid.toString(36)}${caller[0]}${engine?.[0] ?? 'n'}`;
  const failed: Told[] = [];
  for (const round of rounds) {
    const acts = engine === undefined ? ACTS : ENGINE_ACTS;
    const told = await playRound(ground, ledger, { seed: `${SEED}:${caller}`, tag, round, acts });
    played.push(lineOf(engine === undefined ? caller : `${caller} with ${engine}`, told));
    if (told.wrong.length > 0) failed.push(told);
    // Later rounds would find the same damage again.
    if (failed.length === 3) break;
  }
  expect(failed).toEqual([]);
}

/** Divides the rounds among the callers. */
const share = (caller: string): number[] =>
  Array.from({ length: ROUNDS }, (_, i) => FIRST + i)
    .filter((i) => CALLERS.length === 1 || i % 2 === (caller === 'root' ? 0 : 1))
    .filter((i) => ONLY === undefined || i === Number(ONLY));

/** Engines are slow, so a few rounds suffice. */
const few = (caller: string, at: readonly number[]): number[] => share(caller).filter((i) => at.includes(i % 26));

describe.each(CALLERS)('as %s', (caller) => {
  test('no fault during any act loses or duplicates work', () => play(caller, share(caller)), PATIENCE_MS);

  test.runIf(HAS_ENGINE)(
    'no fault with Docker loses or duplicates work',
    () => play(caller, few(caller, [0, 13]), { engine: 'docker' }),
    PATIENCE_MS,
  );

  test.runIf(HAS_PODMAN)(
    'no fault with Podman loses or duplicates work',
    async () => {
      const rounds = few(caller, [2, 15]);
      using user = rounds.length === 0 ? undefined : createPodmanUser('ags-faults');
      await play(caller, rounds, { engine: 'podman', user });
    },
    PATIENCE_MS,
  );
});
