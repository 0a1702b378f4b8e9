// hooks/marked.ts: the processes of a hook, wherever they went: all of them have a word in their environment that no other has.
import { readdirSync, readFileSync } from 'node:fs';

/** Processes whose environment holds a variable that begins so: "AGS_HOOK_MARK=...". */
export function findMarked(mark: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    return Number.isInteger(pid) && environment(pid).includes(mark) ? [pid] : [];
  });
}

/** Ends them all, and those that they start meanwhile. */
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
    // It has ended by itself.
  }
}

/** Processes of the whole machine: one small file, to be looked at often. */
export function countAll(): number {
  return Number(/\/(\d+) /.exec(readFileSync('/proc/loadavg', 'utf8'))?.[1] ?? 0);
}

const ROUNDS = 50;

// One that has ended and is not yet waited for has an empty one.
function environment(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return '';
  }
}
