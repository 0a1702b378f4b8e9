// sandbox/watch/cgroup-removal.ts: kill every process in a control group and remove the group.
// Invariant: a group that is already gone is no error, and signals go only to processes read from the group.
import { closeSync, constants, openSync, readFileSync, rmdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Returns true when the group is gone. A killed process needs a moment to leave; one that waits for a device may never leave. */
export async function remove(directory: string): Promise<boolean> {
  for (let waitMs = 1; waitMs < 2000; waitMs *= 2) {
    if (tryRemove(directory)) return true;
    killAll(directory);
    await sleep(waitMs);
  }
  return tryRemove(directory);
}

export function tryRemove(directory: string): boolean {
  try {
    rmdirSync(directory);
    return true;
  } catch (error) {
    const code = errorCode(error);
    // A scope belongs to its service manager, which removes it as soon as it is empty.
    if (code === 'ENOENT' || code === 'ENODEV') return true;
    if (code === 'EBUSY' || code === 'ENOTEMPTY' || code === 'EACCES' || code === 'EPERM') return false;
    throw error;
  }
}

/** Forbids new processes, then sends SIGKILL to every process inside, once. */
export function killAll(directory: string): void {
  // Without this limit a fork bomb can be faster than the loop below.
  writeIfThere(join(directory, 'pids.max'), '0');
  if (writeIfThere(join(directory, 'cgroup.kill'), '1')) return;
  for (const line of (readIfThere(join(directory, 'cgroup.procs')) ?? '').split('\n')) {
    const pid = Number(line);
    // 0 is a process outside our PID namespace, and kill(2) takes it for our own process group.
    if (pid > 1 && pid !== process.pid) signal(pid);
  }
}

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error;
  }
}

export function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

// Not writeFileSync: it would create a missing file, which a cgroup answers with EACCES, and some files may not be read.
function writeIfThere(file: string, value: string): boolean {
  try {
    const fd = openSync(file, constants.O_WRONLY);
    try {
      writeSync(fd, value);
    } finally {
      closeSync(fd);
    }
    return true;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'ENOENT' || code === 'ENODEV';
}

function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
