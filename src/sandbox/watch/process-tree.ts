// sandbox/watch/process-tree.ts: lists the processes of a sandbox, seen from outside.
// Invariant: every process of a PID namespace descends from its first one, which also adopts orphans. So the tree below the sandbox's PID
// 1 is the sandbox; no change of name, session or parent lets a process leave it.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { statFields } from '../../lib/process/proc-stat.ts';

export interface ProcessTree {
  readonly pids: readonly number[];
  /** Processes and threads, as the kernel counts them. */
  readonly tasks: number;
}

/** Null when `root` is gone. */
export function processTree(root: number): ProcessTree | null {
  const walk = existsSync('/proc/thread-self/children') ? walkChildren : walkParents;
  let tree = walk(root);
  // A process that ended during the walk may have handed its children to PID 1 after PID 1 was read. Without a second walk, a program
  // that keeps forking and exiting is never seen.
  for (let again = 0; again < 2 && tree !== null && tree.vanished; again++) tree = walk(root);
  return tree && { pids: tree.pids, tasks: tree.tasks };
}

/** Start time of a process in clock ticks. With the process ID it identifies one process for ever. Null: no such process. */
export function startTicks(pid: number): string | null {
  return fieldsOf(pid)?.[19] ?? null;
}

interface Walked extends ProcessTree {
  readonly vanished: boolean;
}

function walkChildren(root: number): Walked | null {
  const pids = new Set([root]);
  let tasks = 0;
  let vanished = false;
  // A Set also visits elements that are added during the visit.
  for (const pid of pids) {
    const threads = list(`/proc/${pid}/task`);
    if (threads.length === 0) {
      if (pid === root) return null;
      pids.delete(pid);
      vanished = true;
    }
    tasks += threads.length;
    for (const thread of threads) {
      const children = read(`/proc/${pid}/task/${thread}/children`);
      vanished ||= children === null;
      for (const child of (children ?? '').split(' ')) if (child !== '') pids.add(Number(child));
    }
  }
  return { pids: [...pids], tasks, vanished };
}

/** For a kernel without lists of children: reads every process of the machine and follows parents. */
export function walkParents(root: number): Walked | null {
  const children = new Map<number, number[]>();
  for (const name of list('/proc')) {
    const pid = Number(name);
    const parent = Number.isInteger(pid) ? Number(fieldsOf(pid)?.[1] ?? Number.NaN) : Number.NaN;
    if (!Number.isNaN(parent)) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const pids = new Set([root]);
  for (const pid of pids) for (const child of children.get(pid) ?? []) pids.add(child);
  const tasks = [...pids].map((pid) => list(`/proc/${pid}/task`).length);
  if (tasks[0] === 0) return null;
  return { pids: [...pids], tasks: tasks.reduce((sum, count) => sum + count, 0), vanished: tasks.includes(0) };
}

function fieldsOf(pid: number): string[] | null {
  const stat = read(`/proc/${pid}/stat`);
  return stat === null ? null : statFields(stat);
}

function read(path: string): string | null {
  return unlessGone(() => readFileSync(path, 'utf8'), null);
}

function list(path: string): string[] {
  return unlessGone(() => readdirSync(path), []);
}

/** Returns `gone` only for a process that ended. Any other failure must not make a sandbox look smaller than it is. */
export function unlessGone<T>(look: () => T, gone: T): T {
  try {
    return look();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ESRCH') return gone;
    throw error;
  }
}
