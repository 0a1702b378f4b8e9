// test/faults/rounds.ts: plays rounds: starts an act, strikes with one fault at a chosen moment, then verifies promises, leftovers and the
// next command.
import { lutimesSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasBegun, stateOf, takeOut, type Act, type Begun, type Round } from './acts.ts';
import { findDamage, list, remember, taskNames, type Ledger } from './checker.ts';
import { createDice, type Dice } from './dice.ts';
import { faultsFor } from './faults.ts';
import type { Ground } from './ground.ts';
import { findLeft } from './left.ts';

export interface Told {
  readonly round: number;
  readonly act: string;
  readonly fault: string;
  /** Milliseconds from the start of the act to the fault. */
  readonly atMs: number;
  readonly met: boolean;
  readonly wrong: readonly string[];
}

export function createLedger(ground: Ground): Ledger {
  const begin = ground.machine.git('rev-parse', 'main').trim();
  return { begin, seen: new Map(), messages: [], moves: [], precious: new Set(), wentOn: new Set() };
}

/** Measured durations of acts; a fault's moment is a share of one. */
const usualMs = new Map<string, number>();

export async function playRound(
  ground: Ground,
  ledger: Ledger,
  options: { seed: string; tag: string; round: number; acts: readonly Act[] },
): Promise<Told> {
  const { round, tag, acts } = options;
  const dice = createDice(`${options.seed}:${round}`);
  const act = acts[round % acts.length] ?? dice.pick(acts);
  const fault = dice.pick(faultsFor(act, ground));
  const name = `${tag}-${round}`;
  fault.prepare?.(ground);
  const begun = await act.begin({ ground, ledger, name });
  const over = untilOver(ground, begun);
  const atMs = dice.share() * 1.1 * (usualMs.get(act.name) ?? act.lastsMs);
  await sleep(atMs);
  const met = await fault.strike(ground, begun, dice);
  begun.leave?.();
  const { wrong, tookMs } = await over;
  if (!met) usualMs.set(act.name, tookMs);
  fault.heal?.(ground);
  wrong.push(...(await settle(ground, ledger, begun)), ...(await goOn({ ground, ledger, name }, begun, dice)));
  wrong.push(...(await clearAway(ground, ledger, tag)));
  remember(ground, ledger);
  return { round, act: act.name, fault: fault.name, atMs: Math.round(atMs), met, wrong };
}

/** Waits for the command and the runner that it may have started. */
async function untilOver(ground: Ground, begun: Begun): Promise<{ wrong: string[]; tookMs: number }> {
  const startedMs = performance.now();
  const end = (wrong: string[]) => ({ wrong, tookMs: performance.now() - startedMs });
  const works = (): boolean => ground.processes().some(({ role }) => role === 'runner' || role === 'cli');
  for (let left = 600; left > 0; left--) {
    if (begun.running.isOver() && !works()) return end([]);
    await sleep(100);
  }
  const left = ground.processes().map(({ role, command }) => `${role}: ${command.slice(0, 200)}`);
  return end([`still running after a minute: ${left.join('; ')}`]);
}

/** Runs the next commands, which must work and recover interrupted work. */
async function settle(ground: Ground, ledger: Ledger, begun: Begun): Promise<string[]> {
  const wrong: string[] = [];
  const result = await begun.running.ended;
  if (/bug in ags|^node:/im.test(result.stderr)) wrong.push(`it says: ${result.stderr}`);
  const listed = await ground.ags('list');
  if (listed.code !== 0) wrong.push(`ags list: ${listed.stderr}`);
  wrong.push(...((await begun.end?.(result)) ?? []));
  const { task } = begun;
  if (task !== null && taskNames(ground.stateDir).includes(task)) {
    const diff = await ground.ags('diff', task, '--name-only');
    if (diff.code !== 0 && hasBegun(ground, task)) wrong.push(`ags diff ${task}: ${diff.stderr}`);
  }
  if (begun.applied !== undefined) {
    // A completely applied task has nothing left to merge.
    if (task !== null) ledger.precious.delete(task);
    // The next command for the task recovers interrupted file writes.
    const cleaned = await ground.ags('cleanup', '--yes');
    if (cleaned.code !== 0) wrong.push(`ags cleanup: ${cleaned.stderr}`);
  }
  wrong.push(...findDamage(ground, ledger, begun.applied));
  remember(ground, ledger);
  if (begun.applied !== undefined && task !== null) ledger.precious.delete(task);
  takeOut(ground, begun.applied ?? []);
  return wrong;
}

/** Continues, restarts or removes the task. */
async function goOn({ ground, ledger, name }: Round, { task, passing }: Begun, dice: Dice): Promise<string[]> {
  if (task === null || !taskNames(ground.stateDir).includes(task)) return [];
  const wrong: string[] = [];
  if (dice.share() < 0.3 && stateOf(ground, task) !== 'ready') {
    const text = `write: ${name}-on.txt on // commit: On with ${name}`;
    const sent = await ground.ags('send', task, text);
    if (sent.code === 0) {
      ledger.messages.push({ task, text });
      for (let left = 300; left > 0 && ground.processes().some(({ role }) => role === 'runner'); left--)
        await sleep(100);
      if (stateOf(ground, task) !== 'ready') wrong.push(`${task} continued, but is ${stateOf(ground, task)}`);
    } else if (!sent.stderr.includes('never started')) wrong.push(`ags send ${task}: ${sent.stderr}`);
    wrong.push(...findDamage(ground, ledger));
  }
  // Removes tasks that failed for good, and surplus ones.
  const others = taskNames(ground.stateDir).filter(
    (one) => !['ready', 'merged'].includes(stateOf(ground, one) ?? '') || (passing === true && one === task),
  );
  const many = taskNames(ground.stateDir)
    .filter((one) => stateOf(ground, one) === 'ready' && !others.includes(one))
    .slice(3);
  for (const one of [...others, ...many]) {
    ledger.precious.delete(one);
    const gone = await ground.ags('rm', '--yes', one);
    if (gone.code !== 0) wrong.push(`ags rm ${one}: ${gone.stderr}`);
  }
  return wrong;
}

async function clearAway(ground: Ground, ledger: Ledger, tag: string): Promise<string[]> {
  const wrong: string[] = [];
  const clean = async (): Promise<void> => {
    const cleaned = await ground.ags('cleanup', '--yes');
    if (cleaned.code !== 0) wrong.push(`ags cleanup: ${cleaned.stderr}`);
  };
  await clean();
  let left = await findLeft(ground, tag);
  if (left.length > 0) {
    // ags keeps files younger than a minute, because another process may still write them.
    makeOld(ground);
    await clean();
    left = await findLeft(ground, tag);
  }
  return [...wrong, ...left.map((one) => `left: ${one}`), ...findDamage(ground, ledger)];
}

function makeOld({ stateDir, machine }: Ground): void {
  const old = Date.now() / 1000 - 300;
  const visit = (dir: string, depth: number): void => {
    for (const name of list(dir)) {
      try {
        lutimesSync(join(dir, name), old, old);
        if (depth > 0) visit(join(dir, name), depth - 1);
      } catch {
        // A file, or removed meanwhile.
      }
    }
  };
  visit(stateDir, 3);
  visit(join(machine.home, '.cache/ags'), 0);
}
