// lib/process/liveness.ts: tells whether the process that wrote a file still runs. Process IDs are reused; together with start time and
// boot they are unique.
import { readFileSync } from 'node:fs';
import { statFields } from './proc-stat.ts';

export interface ProcessIdentity {
  readonly pid: number;
  readonly startTicks: string;
}

/** Never alive. */
export const NOBODY: ProcessIdentity = { pid: 0, startTicks: '' };

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, startTicks: started(process.pid) ?? '' };
}

/** The identity of a process that was just started; a dead process has an empty one. */
export function identityOf(pid: number): ProcessIdentity {
  return { pid, startTicks: started(pid) ?? '' };
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identity.startTicks !== '' && started(identity.pid) === identity.startTicks;
}

function started(pid: number): string | null {
  try {
    const fields = statFields(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    if (fields[0] === 'Z') return null;
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${fields[19] ?? ''}`;
  } catch {
    return null;
  }
}
