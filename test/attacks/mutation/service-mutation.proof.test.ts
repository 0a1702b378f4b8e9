// test/attacks/mutation/service-mutation.proof.test.ts: removes one protection of a task's services at a time, and shows that an attempt of
// the table then succeeds: with the real command, from a copy of its source with one replaced piece.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { breaches, type Attack } from '../../../src/attack/table/attack.ts';
import { AgsError } from '../../../src/protocol/errors.ts';
import { makeHostContext } from '../../../src/cli/make-context.ts';
import { openStage, type AttackedProject } from '../../../src/attack/attacked-project.ts';
import { CALLERS, createMachine, giveTo, type Machine } from '../../harness.ts';
import { sourceWith, type Piece } from './mutated-source.ts';
import { ALL_SERVICE_ATTACKS, LEAVE, NEVER, SERVICE_MUTANTS } from './service-mutants.ts';

let machine: Machine;
let stage: AttackedProject;
const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'ags-service-mutant-')));
const unnoticed = new Set(SERVICE_MUTANTS.map(({ name }) => name));

beforeAll(async () => {
  machine = createMachine(CALLERS[0] ?? 'user');
  for (const path of ['.config/ags', 'added']) mkdirSync(join(machine.home, path), { recursive: true });
  // The service's limits are part of the limits of all.
  writeFileSync(
    join(machine.home, '.config/ags/config.yaml'),
    'limits: { memory: 400m, disk: 50m }\nmounts: [{ path: ~/added }]\nservices: { own: { run: [sleep, "9"], ports: [4848] } }\n',
  );
  giveTo(machine.home, machine.uid);
  stage = await openStage({ ...makeHostContext({ ...machine.env }), cwd: machine.project, self: [] }, {});
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  machine[Symbol.dispose]();
  rmSync(scratch, { recursive: true, force: true });
});

test('unchanged services stop each of these attempts', async () => {
  const attacks = ALL_SERVICE_ATTACKS.filter(({ id }) => SERVICE_MUTANTS.some(({ by }) => by === id));
  const [last, others] = [attacks.filter(isLast), attacks.filter((one) => !isLast(one))];
  expect(await attackServices([], others)).toEqual([]);
  for (const one of last) expect(await attackServices([], [one]).catch(isEnded), one.id).toEqual([]);
});

test.for(SERVICE_MUTANTS.map((mutant) => [mutant.name, mutant] as const))(
  'without "%s", an attempt succeeds',
  async ([name, { by, finds, pieces }]) => {
    const found = await attackServices(
      pieces,
      ALL_SERVICE_ATTACKS.filter(({ id }) => id === by),
    );
    expect(found).toEqual(expect.arrayContaining([expect.stringMatching(finds)]));
    unnoticed.delete(name);
  },
);

test('every protection is missed by an attempt, and every attempt succeeds once or cannot', () => {
  expect([...unnoticed]).toEqual([]);
  const seen = SERVICE_MUTANTS.map(({ by }) => by);
  const own = ALL_SERVICE_ATTACKS.filter(({ id, references }) => id !== `service-${references[0]}`);
  expect(own.map(({ id }) => id).filter((id) => !seen.includes(id))).toEqual(Object.keys(NEVER));
});

/** Attempts that end the service. */
const isLast = ({ id }: Attack): boolean => ['service-memory', 'service-disk'].includes(id);

/** The task ends with its service, sometimes before it can report the service's answer. */
function isEnded(error: unknown): string[] {
  if (
    error instanceof AgsError &&
    error.message.startsWith('No attempt could be made inside: The service ags-attack ended')
  )
    return [];
  throw error;
}

let runs = 0;

/** The attempts that succeed, run in a task of their own, after another task. */
async function attackServices(pieces: readonly Piece[], attacks: readonly Attack[]): Promise<string[]> {
  const { tryInside } = await sourceWith(pieces, scratch)(() => import('../../../src/attack/inside.ts'));
  const before = attacks.some(({ id }) => id === 'service-of-another-task') ? [LEAVE] : [];
  for (const one of before)
    expect((await tryInside(stage, [one], `before-${runs++}`)).answers.flatMap((said) => breaches(one, said))).toEqual(
      [],
    );
  const { answers } = await tryInside(stage, attacks, `attack-${runs++}`);
  return attacks.flatMap((one, i) => breaches(one, answers[i] ?? ''));
}
