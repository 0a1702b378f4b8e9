// hooks/marked.ts: finds all processes of a hook by a marker in their environment that no other process has.
import { readdirSync, readFileSync } from 'node:fs';

/** Processes with a variable that begins with the marker: "AGS_HOOK_MARK=...". */
export function findMarked(mark: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    return Number.isInteger(pid) && environment(pid).includes(mark) ? [pid] : [];
  });
}

/** Kills them all, and those that they start meanwhile. */
export function killMarked(mark: string): void {
  for (let round = 0; round < ROUNDS; round++) {
    const found = findMarked(mark);
    if (found.length === 0) return;
    for (const pid of found) killQuietly(pid);
  }
}

/** A negative number is a process group. */
export function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already ended.
  }
}

/** Number of processes of the whole machine, from one small file that is cheap to read often. */
export function countAll(): number {
  return Number(/\/(\d+) /.exec(readFileSync('/proc/loadavg', 'utf8'))?.[1] ?? 0);
}

const ROUNDS = 50;

// A zombie has an empty environment.
function environment(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return '';
  }
}
