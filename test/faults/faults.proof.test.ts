// test/faults/faults.proof.test.ts: kill -9, frozen processes, full disks, moved clocks and dead origins, again and again, at moments that a seed
// chooses. Nothing that was done is lost or doubled, nothing is left, and the next command works.
// `npm run faults` plays hundreds of rounds, others each time; `npm run test:proof` a few, and always the same. The seed is printed: AGS_FAULT_SEED makes
// the same choices again, AGS_FAULT_ROUND plays only one.
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
/** What is under way is decided by the number of a round, so that all has its turn: few rounds are not always the same ones. */
const FIRST = Math.floor(createDice(SEED).share() * 1000);
const ONLY = process.env['AGS_FAULT_ROUND'];
const PATIENCE_MS = 60_000 + ROUNDS * 60_000;

const played: string[] = [];
afterAll(() => console.log(`faults: AGS_FAULT_SEED=${SEED} AGS_FAULT_ROUNDS=${ROUNDS}\n${played.join('\n')}`));

const lineOf = (caller: string, { round, act, fault, atMs, met }: Told): string =>
  `  ${caller} ${round}: ${act}, ${fault} after ${atMs} ms${met ? '' : ' (met nobody)'}`;

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
    // What one has damaged, the next would only find again.
    if (failed.length === 3) break;
  }
  expect(failed).toEqual([]);
}

/** The callers take turns, so that together they play each round once. */
const share = (caller: string): number[] =>
  Array.from({ length: ROUNDS }, (_, i) => FIRST + i)
    .filter((i) => CALLERS.length === 1 || i % 2 === (caller === 'root' ? 0 : 1))
    .filter((i) => ONLY === undefined || i === Number(ONLY));

/** An engine takes its time: a few of them are enough. */
const few = (caller: string, at: readonly number[]): number[] => share(caller).filter((i) => at.includes(i % 26));

describe.each(CALLERS)('as %s', (caller) => {
  test('whatever is under way, and whatever goes wrong', () => play(caller, share(caller)), PATIENCE_MS);

  test.runIf(HAS_ENGINE)(
    'the same with Docker',
    () => play(caller, few(caller, [0, 13]), { engine: 'docker' }),
    PATIENCE_MS,
  );

  test.runIf(HAS_PODMAN)(
    'the same with Podman',
    async () => {
      const rounds = few(caller, [2, 15]);
      using user = rounds.length === 0 ? undefined : createPodmanUser('ags-faults');
      await play(caller, rounds, { engine: 'podman', user });
    },
    PATIENCE_MS,
  );
});
