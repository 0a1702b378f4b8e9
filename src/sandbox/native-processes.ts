// sandbox/native-processes.ts: the processes of a sandbox as the host sees them in /proc.
// Invariant: a signal goes to the very process that was looked at, never to a later one with the same number.
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Init {
  readonly pid: number;
  /** With the pid it names one process for ever. */
  readonly startTicks: string;
}

// bwrap reports when its own life is bound to ours. PID 1 inside binds its life to bwrap's, and then takes the filter.
export function isFiltered(initPid: number): boolean {
  try {
    return /^Seccomp:\s*2/m.test(readFileSync(`/proc/${initPid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** It has started the command's process and sleeps until that ends: whatever it was to take by now, it has. */
export function waits(initPid: number): boolean {
  return firstChild(initPid) !== null && statOf(initPid)?.state === 'S';
}

// bwrap ends when the command does; the kernel takes a moment longer to end what else ran inside, and lets go of PID 1 last.
export async function gone(init: Init | null): Promise<void> {
  if (init === null) return;
  for (
    let stat = statOf(init.pid);
    stat !== null && stat.startTicks === init.startTicks && stat.state !== 'Z';
    stat = statOf(init.pid)
  )
    await sleep(1);
}

// PID 1 inside is bound to bwrap's life only at the end of its set-up: before that it would stay, and run the command.
export function killBoth(child: ChildProcess, init: Init): void {
  killExactly(init);
  child.kill('SIGKILL');
}

/** The launcher has a process group of its own. */
export function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Nobody is left in it.
  }
}

export function killExactly({ pid, startTicks }: Init): void {
  if (statOf(pid)?.startTicks !== startTicks) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}

export function identify(pid: number | null): Init | null {
  const startTicks = pid === null ? undefined : statOf(pid)?.startTicks;
  return pid === null || startTicks === undefined ? null : { pid, startTicks };
}

// PID 1 inside is bwrap's own init, which ignores signals; its only child at the start is the command.
export async function signalCommand(initPid: number, name: NodeJS.Signals): Promise<void> {
  let command = firstChild(initPid);
  // bwrap reports the sandbox before it has made the command's process.
  for (; command === null && statOf(initPid) !== null; command = firstChild(initPid)) await sleep(2);
  if (command === null) return;
  // What a terminal sends goes to the whole job; what another process sends goes to the command alone.
  const toGroup = name === 'SIGINT' || name === 'SIGQUIT';
  try {
    process.kill(toGroup ? -(statOf(command)?.group ?? command) : command, name);
  } catch {
    // It has just ended.
  }
}

function firstChild(pid: number): number | null {
  return children(pid)[0] ?? null;
}

/** bwrap's own child, also where the launcher has left others that copy streams: it is the youngest. */
export function lastChild(pid: number): number | null {
  return children(pid).at(-1) ?? null;
}

function children(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return text === '' ? [] : text.split(' ').map(Number);
  } catch {
    return [];
  }
}

function statOf(pid: number): { state: string; group: number; startTicks: string } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of a program may hold spaces and brackets; the fields begin after the last closing one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', group: Number(fields[2]), startTicks: fields[19] ?? '' };
  } catch {
    return null;
  }
}
