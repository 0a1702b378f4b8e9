// attack/inside.ts: runs the attacker's programs in sandboxes over the attacked project: many attempts in one, one that exceeds its
// limits, and a neighbour that stays.
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError } from '../protocol/errors.ts';
import type { Attack, GreedAttack } from './table/attack.ts';
import { batchInput, batchProgram, parseAnswers } from './table/batch.ts';
import { greedProgram, hasBegun, judgeGreed, type GreedRun, type GreedVerdict } from './table/greed-programs.ts';
import { foundOpen, LEFT_OPEN, NEIGHBOUR } from './table/neighbours.ts';
import type { AttackedProject } from './attacked-project.ts';
import type { PlanOptions } from '../run/plan-run.ts';
import { runCommand } from '../exec/run-command.ts';

/** One answer for each attempt, in order, and all output of the sandbox. */
export async function tryInside(
  stage: AttackedProject,
  attacks: readonly Attack[],
  name: string,
  options = stage.options,
): Promise<{ answers: string[]; said: string }> {
  const input = batchInput(attacks, stage.places);
  const { said, ended } = await runPerl(stage, name, batchProgram(stage.context.nodeArch), input, {}, options);
  if (!said.includes('attempt\t'))
    throw new AgsError(
      'attack.impossible',
      `No attempt could be made inside${ended === null ? '' : `: ${ended}`}. ${said.trim().split('\n').at(-1) ?? ''}`,
      { hint: 'The attempts are written in Perl. Check that the sandbox has it: ags exec -- perl -v' },
    );
  return { answers: parseAnswers(said, attacks), said };
}

/** Runs a program that exceeds its limits, in its own sandbox with small limits. */
export async function tryGreed(stage: AttackedProject, attack: GreedAttack): Promise<GreedVerdict> {
  const { id, limits } = attack;
  const done = await runPerl(stage, id, greedProgram(attack), '', limits, stage.bare);
  if (!hasBegun(done))
    throw new AgsError('attack.impossible', `${id} did not begin. ${done.said.trim().split('\n').at(-1) ?? ''}`, {
      hint: 'The attempts are written in Perl. Check that the sandbox has it: ags exec -- perl -v',
    });
  return judgeGreed(attack, { ...done, far: stage.plan.host.engine?.far != null });
}

async function runPerl(
  stage: AttackedProject,
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
    const { ended, exitCode } = await runCommand(stage.context, {
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
  /** Descriptors of its caller that it should not have had. */
  readonly found: readonly string[];
}

/** Starts another task beside this one, by its own command, from a caller that leaves files open. Returns when it is ready. */
export async function startNeighbour(stage: AttackedProject): Promise<Neighbour> {
  const [program = '', ...script] = stage.context.self;
  const backend = stage.flags.backend === undefined ? [] : ['--backend', stage.flags.backend];
  const secret = openSync(join(stage.places.SIBLING, 'private.txt'), 'r');
  const child = spawn(
    program,
    [...script, 'exec', '--review', 'later', '--name', 'neighbour', ...backend, '--', 'perl', '-e', NEIGHBOUR],
    { cwd: stage.context.cwd, env: { ...stage.context.env }, stdio: carelessly(secret) },
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
    // Its input ends with this process, however that ends, so nothing is left behind.
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

/** Pipes, and the open file at each of the given numbers. */
function carelessly(file: number): ('pipe' | 'ignore' | number)[] {
  const more = Array.from({ length: Math.max(...LEFT_OPEN) - 2 }, (_, i) =>
    LEFT_OPEN.some((fd) => fd === i + 3) ? file : 'ignore',
  );
  return ['pipe', 'pipe', 'pipe', ...more];
}
