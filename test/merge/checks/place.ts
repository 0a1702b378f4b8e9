// test/merge/checks/place.ts: a project with checks, and their leftovers.
import { execFileSync, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ChecksFile } from '../../../src/protocol/checks.ts';
import { until } from '../../exec/given.ts';
import { createMachine, type Caller, type Machine } from '../../harness.ts';

const LINES = Array.from({ length: 12 }, (_, i) => `line ${i + 1}`);
export const text = (change: Record<number, string> = {}): string =>
  `${LINES.map((line, i) => change[i + 1] ?? line).join('\n')}\n`;

export function project(caller: Caller, config: string, files: Record<string, string> = {}): Machine {
  return createMachine(caller, {
    files: { 'ags.yaml': config, 'a.txt': text(), 'b.txt': 'b\n', 'dir/c.txt': 'c\n', ...files },
  });
}

export function fileOf(machine: Machine, id: string): ChecksFile {
  return JSON.parse(readFileSync(join(machine.stateDir, 'tasks', id, 'checks.json'), 'utf8')) as ChecksFile;
}

export function tip(machine: Machine, ref = 'main'): string {
  return machine.git('rev-parse', `refs/heads/${ref}`).trim();
}

/** Unfinished work in the layers directory, including that of checks. */
export function unfinished(machine: Machine): string[] {
  return layers(machine).filter((name) => name.startsWith('.'));
}

export function layers(machine: Machine): string[] {
  const all = join(machine.stateDir, 'layers');
  return (existsSync(all) ? readdirSync(all) : []).flatMap((name) => readdirSync(join(all, name)));
}

export function processes(): string {
  return execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' });
}

/** Starts checks and returns when the first one has printed "begun". */
export async function begin(
  machine: Machine,
  id: string,
): Promise<{ child: ChildProcess; code: Promise<number | null> } & Disposable> {
  const child = machine.start(['check', id]);
  let said = '';
  child.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
  const code = new Promise<number | null>((resolve) => child.on('close', resolve));
  const going = { child, code, [Symbol.dispose]: () => void child.kill('SIGKILL') };
  try {
    await until(() => /^begun$/m.test(said));
    return going;
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error(`it said: ${said}`, { cause: error });
  }
}
