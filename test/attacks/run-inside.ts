// test/attacks/run-inside.ts: runs a table of attempts with the real command over a real project.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { AGS, type Machine, type Result, asMember } from '../harness.ts';
import type { Attack, Places } from '../../src/attack/table/attack.ts';
import { batchInput, batchProgram, parseAnswers } from '../../src/attack/table/batch.ts';
import type { Victims } from './victims.ts';

export interface Inside extends Result {
  readonly answers: readonly string[];
}

/** Runs all attempts in one sandbox. Its caller is careless: it has secrets in the environment and an open descriptor. */
export async function runInside(
  machine: Machine,
  victims: Victims,
  attacks: readonly Attack[],
  flags: readonly string[] = [],
  group?: string,
): Promise<Inside> {
  const secret = openSync(victims.secretFile, 'r');
  const become = group === undefined ? [] : asMember(machine.uid, group);
  const [program = '', ...before] = [...become, process.execPath];
  const child = spawn(
    program,
    [...before, AGS, 'exec', '--review', 'later', ...flags, '--', 'perl', '-e', batchProgram(process.arch)],
    {
      cwd: machine.project,
      env: { ...machine.env, ...victims.env },
      ...(group === undefined ? identity(machine) : {}),
      stdio: ['pipe', 'pipe', 'pipe', 'ignore', 'ignore', 'ignore', 'ignore', 'ignore', 'ignore', secret],
    },
  );
  closeSync(secret);
  const result = await feed(child, batchInput(attacks, victims.places));
  return { ...result, answers: parseAnswers(result.stdout, attacks) };
}

/** Runs the attempts on the host itself, without a sandbox; resolves with the answer of each. */
export async function runOnHost(
  attacks: readonly Attack[],
  places: Partial<Places>,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string[]> {
  const child = spawn('perl', ['-e', batchProgram(process.arch)], { stdio: ['pipe', 'pipe', 'inherit'], env });
  return parseAnswers((await feed(child, batchInput(attacks, places as Places))).stdout, attacks);
}

/** Writes the input and resolves with everything that the process printed, when it has ended. */
export async function feed(child: ChildProcess, input: string): Promise<Result> {
  let [stdout, stderr] = ['', ''];
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(input);
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) =>
    child.on('close', (...end) => resolve(end)),
  );
  return { code, signal, stdout, stderr };
}

export function identity(machine: Machine): { uid?: number; gid?: number } {
  return process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {};
}
