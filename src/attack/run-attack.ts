// attack/run-attack.ts: `ags doctor --attack`: every attempt of the table, for real, against sandboxes as this user's tasks have them here.
// Invariant: an attempt that could not be made is a failure of the whole; nothing counts as stopped that was not seen to be.
import type { AnyAttack, Attack, Area } from './table/attack.ts';
import { breaches } from './table/attack.ts';
import { ENGINE_ATTACKS, ENGINE_CONTROL } from './table/engine.ts';
import { CONTROL } from './table/files.ts';
import { AGENT_ATTACKS } from './table/agents.ts';
import { APART_ATTACKS, GIT_ATTACKS, MERGE_ATTACKS } from './table/git.ts';
import { GREED_ATTACKS } from './table/greed-programs.ts';
import { LASTING_NEIGHBOUR_ATTACKS, LIVE_NEIGHBOUR_ATTACKS, USES_LEFT_OPEN } from './table/neighbours.ts';
import { LASTING_SERVICE_ATTACKS } from './table/services.ts';
import { INSIDE_ATTACKS } from './table/table.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { visible } from '../lib/sanitize.ts';
import { keepAttacked } from '../store/attacked.ts';
import { startNeighbour, tryGreed, tryInside, type Neighbour } from './inside.ts';
import { takeRoad } from './git-pipeline.ts';
import { notAttacked } from './settings.ts';
import { openStage, type AttackStage } from './attacked-project.ts';
import { sandboxKey } from '../run/sandbox-key.ts';
import { describeStrength } from '../run/strength-label.ts';
import type { World } from '../run/host-context.ts';

export type Verdict = 'stopped' | 'limited' | 'not stopped' | 'not applicable';

export interface Attacked {
  readonly id: string;
  readonly area: Area;
  readonly what: string;
  readonly references: readonly string[];
  readonly verdict: Verdict;
  /** What happened, or why it does not apply; empty when it was plainly refused. */
  readonly why: string;
}

export interface AttackReport {
  readonly backend: string;
  /** What isolation was in force, in words. */
  readonly sandbox: string;
  readonly at: string;
  readonly ms: number;
  /** Every attempt was stopped, or limited where nothing better was promised. */
  readonly stands: boolean;
  /** What this configuration has and no attempt met. */
  readonly notAttacked: readonly string[];
  readonly attacks: readonly Attacked[];
}

export async function attackSandbox(
  world: World,
  flags: ConfigFlags,
  onStep: (text: string) => void,
): Promise<AttackReport> {
  const began = world.now().getTime();
  onStep('Setting the stage');
  await using stage = await openStage(world, flags);
  onStep('Attacking');
  const attacks = await judgeAll(stage, [alone(stage), engine(stage), greedy(stage), road(stage)]);
  const stands = attacks.every(({ verdict }) => verdict !== 'not stopped');
  const report = {
    backend: stage.plan.host.engine?.name ?? 'native',
    sandbox: describeStrength(stage.plan),
    at: world.now().toISOString(),
    ms: world.now().getTime() - began,
    stands,
    notAttacked: notAttacked(stage.own.configured),
    attacks,
  };
  const made = attacks.filter(({ verdict }) => verdict !== 'not applicable');
  keepAttacked(world.stateDir, sandboxKey(world, stage.own), {
    held: made.filter(({ verdict }) => verdict !== 'not stopped').length,
    of: made.length,
    atMs: world.now().getTime(),
  });
  return report;
}

/** Attempts that were made together, and everything that came out of their sandboxes. */
interface Made {
  readonly attacks: readonly Attacked[];
  readonly said: string;
}

/** With what all of them together did outside, which nobody knows before the last of them has ended. */
export async function judgeAll(
  stage: Pick<AttackStage, 'touched' | 'word'>,
  parts: readonly Promise<Made>[],
): Promise<Attacked[]> {
  // Whatever one of them needs, nothing may be taken away before all have ended.
  const all = (await Promise.allSettled(parts)).map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
  const leaked = all.some(({ said }) => said.includes(stage.word)) ? ['a secret came out'] : [];
  return [...all.flatMap(({ attacks }) => attacks), judge(OUTSIDE, [...stage.touched(), ...leaked])];
}

/** From inside: with a neighbour, and after it. */
async function alone(stage: AttackStage): Promise<Made> {
  const online = stage.places.ECHO !== '';
  const fits = (one: Attack): boolean => inapplicable(stage, one, online) === null;
  const left = [...INSIDE_ATTACKS, ...LASTING_SERVICE_ATTACKS].filter((one) => !fits(one));
  const lasting = [...LASTING_NEIGHBOUR_ATTACKS, ...LASTING_SERVICE_ATTACKS.filter(fits)];
  const here = [...INSIDE_ATTACKS.filter(fits), ...LIVE_NEIGHBOUR_ATTACKS, ...lasting, CONTROL];
  const first = await besideNeighbour(stage, here);
  const later = await tryInside(stage, lasting, 'later');
  const container = stage.plan.host.engine !== null;
  const judged = here.map((one, i) => {
    const after = lasting.indexOf(one);
    const wrong = [
      ...breaches(one, first.answers[i] ?? '', container),
      ...(one.id === USES_LEFT_OPEN ? first.found : []),
      ...(after < 0 ? [] : breaches(one, later.answers[after] ?? '', container)),
    ];
    return judge(one, wrong);
  });
  const notMade = left.map((one) => describe(one, 'not applicable', inapplicable(stage, one, online) ?? ''));
  return { attacks: [...judged, ...notMade], said: [first, later].map(everything).join('\n') };
}

function everything({ said, answers }: Awaited<ReturnType<typeof tryInside>>): string {
  return [said, ...answers].join('\n');
}

async function besideNeighbour(
  stage: AttackStage,
  attacks: readonly Attack[],
): Promise<Awaited<ReturnType<typeof tryInside>> & Pick<Neighbour, 'found'>> {
  await using neighbour = await startNeighbour(stage);
  return { ...(await tryInside(stage, attacks, 'attack')), found: neighbour.found };
}

/** Not an attempt of its own: what all of them together did outside. */
const OUTSIDE: AnyAttack = {
  id: 'fs-outside-untouched',
  area: 'filesystem',
  what: 'touch anything outside, or bring a secret out, by all of these together',
  references: [],
  perl: '',
  expect: [],
};

function inapplicable({ plan }: AttackStage, { needs, notOverImage }: Attack, online: boolean): string | null {
  if (needs === 'services' && plan.config.services.length === 0) return 'your configuration has no services';
  if (needs === 'origin' && !online) return 'your sandboxes have no network';
  return plan.image !== null && notOverImage !== undefined ? `over an image, ${notOverImage}` : null;
}

/** From containers of an engine of the task's own. */
async function engine(stage: AttackStage): Promise<Made> {
  const attacks = [ENGINE_CONTROL, ...ENGINE_ATTACKS];
  const why = 'your configuration has no Docker inside (docker: true)';
  if (!stage.plan.config.docker.enabled)
    return { attacks: attacks.map((one) => describe(one, 'not applicable', why)), said: '' };
  const found = await tryInside(stage, attacks, 'engine');
  return {
    attacks: attacks.map((one, i) => judge(one, breaches(one, found.answers[i] ?? ''))),
    said: everything(found),
  };
}

async function greedy(stage: AttackStage): Promise<Made> {
  const attacks = await twoAtATime(GREED_ATTACKS, async (one) => {
    const found = await tryGreed(stage, one);
    return ['held' in found ? describe(one, 'limited', found.held) : judge(one, [found.wrong])];
  });
  return { attacks, said: '' };
}

/** More would only wait for each other, and each of them wants all it can get. */
async function twoAtATime<T>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<Attacked[]>,
): Promise<Attacked[]> {
  const queue = [...items.entries()];
  const found: Attacked[][] = [];
  const take = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, item] = next;
      found[index] = await work(item, index);
    }
  };
  await Promise.all([take(), take()]);
  return found.flat();
}

async function road(stage: AttackStage): Promise<Made> {
  const all = [[...GIT_ATTACKS, ...MERGE_ATTACKS, ...AGENT_ATTACKS], ...APART_ATTACKS.map((one) => [one])];
  const attacks = await twoAtATime(all, async (some, i) => {
    const after = await takeRoad(stage, some, `attacker-${i + 1}`);
    return some.map((one) => judge(one, one.judge(after)));
  });
  return { attacks, said: '' };
}

function judge(attack: AnyAttack, wrong: readonly string[]): Attacked {
  if (wrong.length === 0) return describe(attack, attack.best ?? 'stopped', '');
  return describe(attack, 'not stopped', wrong.slice(0, 5).join('; '));
}

function describe({ id, area, what, references }: AnyAttack, verdict: Verdict, why: string): Attacked {
  return { id, area, what, references, verdict, why: visible(why) };
}
