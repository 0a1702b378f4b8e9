// lib/liveness.ts: is the process that wrote this file still the one that runs? A pid alone is reused; with its start
// time and the boot it belongs to, it is not.
import { readFileSync } from 'node:fs';

export interface ProcessIdentity {
  readonly pid: number;
  readonly startTicks: string;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, startTicks: started(process.pid) ?? '' };
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identity.startTicks !== '' && started(identity.pid) === identity.startTicks;
}

function started(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command name stands in brackets and may itself contain spaces and brackets: count from the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z') return null;
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${fields[19] ?? ''}`;
  } catch {
    return null;
  }
}
