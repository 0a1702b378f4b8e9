// sandbox/io/processes.ts: the processes of a sandbox as the host sees them in /proc.
// Invariant: a signal goes only to the process that was inspected, never to a later one with the same number.
import type { ChildProcess } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode } from '../../lib/error-code.ts';
import { statFields } from '../../lib/process/proc-stat.ts';

export interface Init {
  readonly pid: number;
  /** Together with the process ID it identifies one process for ever. */
  readonly startTicks: string;
}

// bwrap reports once it is bound to our life. PID 1 inside binds itself to bwrap, and then installs the filter.
export function isFiltered(initPid: number): boolean {
  return /^Seccomp:\s*2/m.test(read(`/proc/${initPid}/status`));
}

/** Also `shared` if it cannot be read, so that nothing runs then. */
export function networkOf(initPid: number): 'own' | 'shared' | 'gone' {
  try {
    return readlinkSync(`/proc/${initPid}/ns/net`) === readlinkSync('/proc/self/ns/net') ? 'shared' : 'own';
  } catch (error) {
    return errorCode(error) === 'ENOENT' ? 'gone' : 'shared';
  }
}

/** It has started the command's process and sleeps until that ends, so its set-up is complete. */
export function waits(initPid: number): boolean {
  return firstChild(initPid) !== null && statOf(initPid)?.state === 'S';
}

// bwrap ends with the command; the kernel needs a moment more to kill the other processes inside, and removes PID 1 last.
export async function gone(init: Init | null): Promise<void> {
  if (init === null) return;
  while (lives(init)) await sleep(1);
}

export function lives({ pid, startTicks }: Init): boolean {
  const stat = statOf(pid);
  return stat !== null && stat.startTicks === startTicks && stat.state !== 'Z';
}

// PID 1 inside is bound to bwrap only at the end of its set-up: before that it would survive and run the command.
export function killBoth(child: ChildProcess, init: Init): void {
  killExactly(init);
  child.kill('SIGKILL');
}

/** The launcher has its own process group. */
export function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // No process is left in it.
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
  // bwrap reports the sandbox before it has created the command's process.
  for (; command === null && statOf(initPid) !== null; command = firstChild(initPid)) await sleep(2);
  if (command === null) return;
  // A terminal's signals go to the whole job; signals of other processes go to the command alone.
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

/** bwrap's own child is in a new PID namespace; the launcher's other children copy streams. */
export function namespacedChild(pid: number): number | null {
  return children(pid).find((child) => /^NSpid:\s+\d+\s+\d/m.test(read(`/proc/${child}/status`))) ?? null;
}

function children(pid: number): number[] {
  const text = read(`/proc/${pid}/task/${pid}/children`).trim();
  return text === '' ? [] : text.split(' ').map(Number);
}

/** '' when the process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function statOf(pid: number): { state: string; group: number; startTicks: string } | null {
  try {
    const fields = statFields(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    return { state: fields[0] ?? '', group: Number(fields[2]), startTicks: fields[19] ?? '' };
  } catch {
    return null;
  }
}
