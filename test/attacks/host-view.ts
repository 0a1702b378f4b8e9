// test/attacks/host-view.ts: the processes of a sandbox, seen from the host, and a wait with a timeout.
import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { shareReadiness, type Machine } from '../harness.ts';

/** Processes of this machine with the word in their command line, which zombies do not have. */
export function processesWith(word: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => readProc(pid, 'cmdline').includes(word))
    .map(Number);
}

export function readProc(pid: string | number, file: 'cmdline' | 'environ' | 'status'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    // The process has ended.
    return '';
  }
}

/** Waits until the claim holds; false if it does not in time. */
export async function until(claim: () => boolean, timeoutMs = 60_000, everyMs = 50): Promise<boolean> {
  for (const end = Date.now() + timeoutMs; Date.now() < end; await sleep(everyMs)) if (claim()) return true;
  return claim();
}

/** Cleans up after a failed test. It only ends processes with the word, which is random. */
export function endProcessesWith(word: string): void {
  for (const pid of processesWith(word)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process has ended.
    }
  }
}

/** Starts a command and waits until it has printed "ready". */
export async function startReady(
  machine: Machine,
  command: readonly string[],
  flags: readonly string[] = [],
): Promise<ChildProcess> {
  shareReadiness(machine);
  const child = machine.start(['exec', '--review', 'later', ...flags, '--', ...command]);
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
  if (!(await until(() => said.includes('ready') || child.exitCode !== null)))
    throw new Error(`it did not start: ${said}`);
  if (!said.includes('ready')) throw new Error(`it ended: ${said}`);
  return child;
}
