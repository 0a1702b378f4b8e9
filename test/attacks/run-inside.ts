// test/attacks/run-inside.ts: a table of attempts, run by the real command over a real project.
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { AGS, type Machine, type Result, asMember } from '../harness.ts';
import type { Attack } from '../../src/attack/table/attack.ts';
import { batchInput, batchProgram, parseAnswers } from '../../src/attack/table/batch.ts';
import type { Victims } from './victims.ts';

export interface Inside extends Result {
  readonly answers: readonly string[];
}

/** All attempts in one sandbox, started by a careless caller: secrets in the environment, and a descriptor left open. */
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
  let [stdout, stderr] = ['', ''];
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(batchInput(attacks, victims.places));
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) =>
    child.on('close', (...end) => resolve(end)),
  );
  return { code, signal, stdout, stderr, answers: parseAnswers(stdout, attacks) };
}

export function identity(machine: Machine): { uid?: number; gid?: number } {
  return process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {};
}
