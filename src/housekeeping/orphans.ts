// housekeeping/orphans.ts: processes of sandboxes whose runner is dead.
// Invariant: nothing is ended that anybody still waits for. A process counts as a stray only if it has exactly the
// environment that our launcher gets, and the process that started its launcher is gone: it was handed to a process that is
// not Node, or to the machine's first one. A task that is merely unknown here may be another user's, or another state
// directory's, and be alive.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { statFields } from '../lib/process/proc-stat.ts';
import { startTicks, unlessGone } from '../sandbox/watch/process-tree.ts';

export interface Stray {
  readonly pid: number;
  /** With the pid it names one process for ever. */
  readonly startTicks: string;
  readonly task: string;
}

/** `isLive` says whether the runner of a task is alive, as far as it is known here. */
export function findStrays(isLive: (task: string) => boolean): Stray[] {
  const marked = markedProcesses();
  const related = lineOf(process.pid);
  const starter = (pid: number): number => {
    let at = pid;
    for (let up = marked.get(at); up !== undefined; up = marked.get(at)) at = up.parent;
    return at;
  };
  return [...marked].flatMap(([pid, { task }]) => {
    const ticks = startTicks(pid);
    return ticks === null || related.has(pid) || isLive(task) || mayBeRunner(starter(pid))
      ? []
      : [{ pid, startTicks: ticks, task }];
  });
}

/** Returns those that are gone. One that waits for a device may stay. */
export async function endStrays(strays: readonly Stray[]): Promise<Stray[]> {
  const isThere = (stray: Stray): boolean => startTicks(stray.pid) === stray.startTicks && stateOf(stray.pid) !== 'Z';
  for (const stray of strays) if (isThere(stray)) kill(stray.pid);
  for (let waitMs = 1; waitMs < 2000 && strays.some(isThere); waitMs *= 2) await sleep(waitMs);
  return strays.filter((stray) => !isThere(stray));
}

interface Marked {
  readonly task: string;
  readonly parent: number;
}

/** The environment of a process is that of its start; a program inside the sandbox has another. */
function markedProcesses(): Map<number, Marked> {
  const marked = new Map<number, Marked>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const task = markOf(pid);
    const parent = task === null ? null : parentOf(pid);
    if (task !== null && parent !== null) marked.set(pid, { task, parent });
  }
  return marked;
}

// The launcher gets PATH and AGS_RUN, and XDG_RUNTIME_DIR for systemd-run; shells add the rest.
const LAUNCHER_ENV = new Set(['PATH', 'AGS_RUN', 'XDG_RUNTIME_DIR', 'PWD', 'OLDPWD', 'SHLVL', '_']);

function markOf(pid: number): string | null {
  const text = read(`/proc/${pid}/environ`);
  if (text === null || !text.includes('AGS_RUN=')) return null;
  const variables = text.split('\0').filter((one) => one !== '');
  if (!variables.every((one) => LAUNCHER_ENV.has(one.split('=')[0] ?? ''))) return null;
  return (
    /^AGS_RUN=([a-z0-9][a-z0-9-]{0,62})$/.exec(variables.find((one) => one.startsWith('AGS_RUN=')) ?? '')?.[1] ?? null
  );
}

// Orphans are handed to the machine's first process, or to the user's service manager.
const SERVICE_MANAGERS = ['systemd', 'init'];

function mayBeRunner(pid: number): boolean {
  // The first process of a PID namespace has no parent that could be seen: we are inside of that namespace.
  if (pid === 0) return true;
  // In a container the first process may be ags, or some other Node program.
  if (pid === 1) return (read('/proc/1/cmdline') ?? '').split('\0').some((word) => /^ags(\.js)?$/.test(basename(word)));
  if (SERVICE_MANAGERS.includes((read(`/proc/${pid}/comm`) ?? '').trim())) return false;
  const program = programOf(pid);
  return (
    program === null ||
    ['node', 'nodejs', 'ags', basename(process.execPath)].includes(basename(program.replace(/ \(deleted\)$/, '')))
  );
}

/** Null when that is not for us to know: it is another user's, who may well have started a process as us. */
function programOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    return null;
  }
}

function lineOf(pid: number): Set<number> {
  const line = new Set<number>();
  for (let at: number | null = pid; at !== null && at > 0 && !line.has(at); at = parentOf(at)) line.add(at);
  return line;
}

function parentOf(pid: number): number | null {
  const field = fieldsOf(pid)?.[1];
  return field === undefined ? null : Number(field);
}

function stateOf(pid: number): string | undefined {
  return fieldsOf(pid)?.[0];
}

function fieldsOf(pid: number): string[] | null {
  const stat = read(`/proc/${pid}/stat`);
  return stat === null ? null : statFields(stat);
}

/** Null: it has ended, or belongs to somebody else. */
function read(path: string): string | null {
  try {
    return unlessGone(() => readFileSync(path, 'latin1'), null);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EACCES' || code === 'EPERM') return null;
    throw error;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
