// lib/process/liveness.ts: is the process that wrote this file still the one that runs? A pid alone is reused; with its start
// time and the boot it belongs to, it is not.
import { readFileSync } from 'node:fs';
import { statFields } from './proc-stat.ts';

export interface ProcessIdentity {
  readonly pid: number;
  readonly startTicks: string;
}

/** Alive never. */
export const NOBODY: ProcessIdentity = { pid: 0, startTicks: '' };

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, startTicks: started(process.pid) ?? '' };
}

/** Of a process that was just started; one that is dead already has none that anybody could meet again. */
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
