// attack/run-attack.ts: `ags doctor --attack`: makes every attempt of the table, for real, against sandboxes configured like this user's tasks.
// Invariant: an attempt that could not be made fails the whole run; an attempt counts as stopped only if that was observed.
import type { AnyAttack, Attack, Area } from './table/attack.ts';
import { breaches } from './table/attack.ts';
import { ENGINE_ATTACKS, ENGINE_CONTROL } from './table/engine.ts';
import { CONTROL } from './table/files.ts';
import { AGENT_ATTACKS } from './table/agents.ts';
import { LONE_ATTACKS, GIT_ATTACKS, MERGE_ATTACKS } from './table/git.ts';
import { GREED_ATTACKS } from './table/greed-programs.ts';
import { LASTING_NEIGHBOUR_ATTACKS, LIVE_NEIGHBOUR_ATTACKS, USES_LEFT_OPEN } from './table/neighbours.ts';
import { LASTING_SERVICE_ATTACKS } from './table/services.ts';
import { INSIDE_ATTACKS } from './table/table.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { visible } from '../lib/sanitize.ts';
import { keepAttacked } from '../store/attacked.ts';
import { startNeighbour, tryGreed, tryInside, type Neighbour } from './inside.ts';
import { attackGitPipeline } from './git-pipeline.ts';
import { notAttacked } from './settings.ts';
import { openStage, type AttackedProject } from './attacked-project.ts';
import { sandboxKey } from '../run/sandbox-key.ts';
import { describeStrength } from '../run/strength-label.ts';
import type { HostContext } from '../run/host-context.ts';

export type Verdict = 'stopped' | 'limited' | 'not stopped' | 'not applicable';

export interface Attacked {
  readonly id: string;
  readonly area: Area;
  readonly what: string;
  readonly references: readonly string[];
  readonly verdict: Verdict;
  /** The outcome, or the reason why the attempt does not apply; empty if it was plainly refused. */
  readonly why: string;
}

export interface AttackReport {
  readonly backend: string;
  /** A description of the isolation that was in force. */
  readonly sandbox: string;
  readonly at: string;
  readonly ms: number;
  /** Every attempt was stopped, or limited where SECURITY.md promises no more. */
  readonly stands: boolean;
  /** Parts of this configuration that no attempt covers. */
  readonly notAttacked: readonly string[];
  readonly attacks: readonly Attacked[];
}

export async function attackSandbox(
  context: HostContext,
  flags: ConfigFlags,
  onStep: (text: string) => void,
): Promise<AttackReport> {
  const began = context.now().getTime();
  onStep('Setting the stage');
  await using stage = await openStage(context, flags);
  onStep('Attacking');
  const attacks = await judgeAll(stage, [alone(stage), engine(stage), greedy(stage), gitPipeline(stage)]);
  const stands = attacks.every(({ verdict }) => verdict !== 'not stopped');
  const report = {
    backend: stage.plan.host.engine?.name ?? 'native',
    sandbox: describeStrength(stage.plan),
    at: context.now().toISOString(),
    ms: context.now().getTime() - began,
    stands,
    notAttacked: notAttacked(stage.own.configured),
    attacks,
  };
  const made = attacks.filter(({ verdict }) => verdict !== 'not applicable');
  keepAttacked(context.stateDir, sandboxKey(context, stage.own), {
    held: made.filter(({ verdict }) => verdict !== 'not stopped').length,
    of: made.length,
    atMs: context.now().getTime(),
  });
  return report;
}

/** Attempts that were made together, and all output of their sandboxes. */
interface Made {
  readonly attacks: readonly Attacked[];
  readonly said: string;
}

/** Judges all attempts, and what they did outside together, which is known only after the last one has ended. */
export async function judgeAll(
  stage: Pick<AttackedProject, 'touched' | 'word'>,
  parts: readonly Promise<Made>[],
): Promise<Attacked[]> {
  // Nothing may be cleaned up before all attempts have ended.
  const all = (await Promise.allSettled(parts)).map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
  const leaked = all.some(({ said }) => said.includes(stage.word)) ? ['a secret came out'] : [];
  return [...all.flatMap(({ attacks }) => attacks), judge(OUTSIDE, [...stage.touched(), ...leaked])];
}

/** From inside: beside a neighbour, and after it has ended. */
async function alone(stage: AttackedProject): Promise<Made> {
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
  stage: AttackedProject,
  attacks: readonly Attack[],
): Promise<Awaited<ReturnType<typeof tryInside>> & Pick<Neighbour, 'found'>> {
  await using neighbour = await startNeighbour(stage);
  return { ...(await tryInside(stage, attacks, 'attack')), found: neighbour.found };
}

/** Not an attempt of its own: the effects of all attempts outside the sandbox. */
const OUTSIDE: AnyAttack = {
  id: 'fs-outside-untouched',
  area: 'filesystem',
  what: 'touch anything outside, or bring a secret out, by all of these together',
  references: [],
  perl: '',
  expect: [],
};

function inapplicable({ plan }: AttackedProject, { needs, notOverImage }: Attack, online: boolean): string | null {
  if (needs === 'services' && plan.config.services.length === 0) return 'your configuration has no services';
  if (needs === 'origin' && !online) return 'your sandboxes have no network';
  return plan.image !== null && notOverImage !== undefined ? `over an image, ${notOverImage}` : null;
}

/** From containers of nested Docker. */
async function engine(stage: AttackedProject): Promise<Made> {
  const attacks = [ENGINE_CONTROL, ...ENGINE_ATTACKS];
  const why = 'your configuration has no nested Docker (docker: true)';
  if (!stage.plan.config.docker.enabled)
    return { attacks: attacks.map((one) => describe(one, 'not applicable', why)), said: '' };
  const found = await tryInside(stage, attacks, 'engine');
  return {
    attacks: attacks.map((one, i) => judge(one, breaches(one, found.answers[i] ?? ''))),
    said: everything(found),
  };
}

async function greedy(stage: AttackedProject): Promise<Made> {
  const attacks = await twoAtATime(GREED_ATTACKS, async (one) => {
    const found = await tryGreed(stage, one);
    return ['held' in found ? describe(one, 'limited', found.held) : judge(one, [found.wrong])];
  });
  return { attacks, said: '' };
}

/** More would only wait for each other, because each takes all the resources it can get. */
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

async function gitPipeline(stage: AttackedProject): Promise<Made> {
  const all = [[...GIT_ATTACKS, ...MERGE_ATTACKS, ...AGENT_ATTACKS], ...LONE_ATTACKS.map((one) => [one])];
  const attacks = await twoAtATime(all, async (some, i) => {
    const after = await attackGitPipeline(stage, some, `attacker-${i + 1}`);
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
