// housekeeping/orphans.ts: finds and ends processes of sandboxes whose runner is dead.
// Invariant: no process is ended that a runner still waits for. A process counts as an orphan only if it has exactly the
// environment of the launcher, and the process that started its launcher is gone, so that it now belongs to init or another
// program that is not Node. A task that is merely unknown here may be running for another user or another state directory.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { statFields } from '../lib/process/proc-stat.ts';
import { startTicks, unlessGone } from '../sandbox/watch/process-tree.ts';

export interface Orphan {
  readonly pid: number;
  /** Together with the pid it identifies one process for good. */
  readonly startTicks: string;
  readonly task: string;
}

/** `isLive` tells whether the runner of a task is known to be alive. */
export function findOrphans(isLive: (task: string) => boolean): Orphan[] {
  const marked = markedProcesses();
  const ancestors = ancestorsOf(process.pid);
  const starter = (pid: number): number => {
    let at = pid;
    for (let up = marked.get(at); up !== undefined; up = marked.get(at)) at = up.parent;
    return at;
  };
  return [...marked].flatMap(([pid, { task }]) => {
    const ticks = startTicks(pid);
    return ticks === null || ancestors.has(pid) || isLive(task) || mayBeRunner(starter(pid))
      ? []
      : [{ pid, startTicks: ticks, task }];
  });
}

/** Returns the ended ones. A process that waits for a device may stay. */
export async function endOrphans(orphans: readonly Orphan[]): Promise<Orphan[]> {
  const isThere = (orphan: Orphan): boolean =>
    startTicks(orphan.pid) === orphan.startTicks && stateOf(orphan.pid) !== 'Z';
  for (const orphan of orphans) if (isThere(orphan)) kill(orphan.pid);
  for (let waitMs = 1; waitMs < 2000 && orphans.some(isThere); waitMs *= 2) await sleep(waitMs);
  return orphans.filter((orphan) => !isThere(orphan));
}

interface Marked {
  readonly task: string;
  readonly parent: number;
}

/** /proc shows the environment that a process was started with; programs inside the sandbox have another one. */
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

// The launcher gets PATH, AGS_RUN and, for systemd-run, XDG_RUNTIME_DIR. Shells add the rest.
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

// The kernel gives orphans to the machine's first process, or to the user's service manager.
const SERVICE_MANAGERS = ['systemd', 'init'];

function mayBeRunner(pid: number): boolean {
  // The parent of a PID namespace's first process is not visible from inside that namespace.
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

/** null: unknown, because the process belongs to another user, who may have started a process under our user ID. */
function programOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    return null;
  }
}

function ancestorsOf(pid: number): Set<number> {
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

/** null: the process has ended, or belongs to another user. */
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
