// attack/inside.ts: programs of the attacker in sandboxes over the stage: many attempts in one, one that wants too much, and a
// neighbour that stays.
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError } from '../protocol/errors.ts';
import type { Attack, GreedAttack } from './table/attack.ts';
import { batchInput, batchProgram, parseAnswers } from './table/batch.ts';
import { greedProgram, hasBegun, judgeGreed, type GreedRun, type GreedVerdict } from './table/greed.ts';
import { foundOpen, LEFT_OPEN, NEIGHBOUR } from './table/neighbours.ts';
import type { AttackStage } from './attacked-project.ts';
import type { PlanOptions } from '../run/plan-run.ts';
import { runCommand } from '../exec/run-command.ts';

/** One answer for each, in order; and everything that came out of the sandbox. */
export async function tryInside(
  stage: AttackStage,
  attacks: readonly Attack[],
  name: string,
  options = stage.options,
): Promise<{ answers: string[]; said: string }> {
  const input = batchInput(attacks, stage.places);
  const { said, ended } = await runPerl(stage, name, batchProgram(stage.world.nodeArch), input, {}, options);
  if (!said.includes('attempt\t'))
    throw new AgsError(
      'attack.impossible',
      `No attempt could be made inside${ended === null ? '' : `: ${ended}`}. ${said.trim().split('\n').at(-1) ?? ''}`,
      { hint: 'The attempts are in perl. Is there one inside? See: ags exec -- perl -v' },
    );
  return { answers: parseAnswers(said, attacks), said };
}

/** What became of one that wants too much, in a sandbox of its own with small limits. */
export async function tryGreed(stage: AttackStage, attack: GreedAttack): Promise<GreedVerdict> {
  const { id, limits } = attack;
  const done = await runPerl(stage, id, greedProgram(attack), '', limits, stage.bare);
  if (!hasBegun(done))
    throw new AgsError('attack.impossible', `${id} did not begin. ${done.said.trim().split('\n').at(-1) ?? ''}`, {
      hint: 'The attempts are in perl. Is there one inside? See: ags exec -- perl -v',
    });
  return judgeGreed(attack, { ...done, far: stage.plan.host.engine?.far != null });
}

async function runPerl(
  stage: AttackStage,
  name: string,
  program: string,
  input: string,
  limits: Readonly<Record<string, string>>,
  plan: PlanOptions,
): Promise<GreedRun> {
  const [inFile, outFile] = [join(stage.dir, `${name}.in`), join(stage.dir, `${name}.out`)];
  writeFileSync(inFile, input, { mode: 0o600 });
  const [stdin, stdout] = [openSync(inFile, 'r'), openSync(outFile, 'w', 0o600)];
  try {
    const { ended, exitCode } = await runCommand(stage.world, {
      kind: 'exec',
      command: ['perl', '-e', program],
      flags: { ...stage.flags, limits: { ...stage.flags.limits, ...limits } },
      plan,
      name,
      quiet: true,
      notice: () => undefined,
      openStdio: () =>
        Promise.resolve({ stdio: { stdin, stdout, stderr: stdout, terminal: null }, close: () => Promise.resolve() }),
    });
    return { said: readFileSync(outFile, 'utf8'), ended, exitCode };
  } finally {
    closeSync(stdin);
    closeSync(stdout);
  }
}

const READY_MS = 60_000;

export interface Neighbour extends AsyncDisposable {
  /** What it found of its caller's that it should not have. */
  readonly found: readonly string[];
}

/** A task beside the others, by a command of its own, which a careless caller has started; it is ready when this returns. */
export async function startNeighbour(stage: AttackStage): Promise<Neighbour> {
  const [program = '', ...script] = stage.world.self;
  const backend = stage.flags.backend === undefined ? [] : ['--backend', stage.flags.backend];
  const secret = openSync(join(stage.places.SIBLING, 'private.txt'), 'r');
  const child = spawn(
    program,
    [...script, 'exec', '--review', 'later', '--name', 'neighbour', ...backend, '--', 'perl', '-e', NEIGHBOUR],
    { cwd: stage.world.cwd, env: { ...stage.world.env }, stdio: carelessly(secret) },
  );
  closeSync(secret);
  child.stdin?.on('error', () => undefined);
  const over = new Promise<void>((resolve) => child.on('close', () => resolve()));
  let said = '';
  const ready = new Promise<void>((resolve) => {
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        said += chunk.toString('utf8');
        if (said.includes('ready\n')) resolve();
      });
  });
  const end = async (): Promise<void> => {
    // Its input ends with us too, however we end: nothing of it is left behind.
    child.stdin?.end();
    await over;
  };
  await Promise.race([ready, over, sleep(READY_MS, undefined, { ref: false })]);
  if (said.includes('ready\n')) return { found: foundOpen(said), [Symbol.asyncDispose]: end };
  await end();
  throw new AgsError('attack.impossible', `The neighbour did not start: ${said.trim().split('\n')[0] ?? ''}`, {
    hint: 'See: ags doctor',
  });
}

/** Pipes, and the file at each of its numbers. */
function carelessly(file: number): ('pipe' | 'ignore' | number)[] {
  const more = Array.from({ length: Math.max(...LEFT_OPEN) - 2 }, (_, i) =>
    LEFT_OPEN.some((fd) => fd === i + 3) ? file : 'ignore',
  );
  return ['pipe', 'pipe', 'pipe', ...more];
}
