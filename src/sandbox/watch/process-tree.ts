// sandbox/watch/process-tree.ts: which processes belong to a sandbox, seen from outside.
// Invariant: every process of a PID namespace descends from its first one, and an orphan is handed to that one. So the
// tree below the sandbox's PID 1 is the sandbox; nothing a process does to its name, session or parent gets it out.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { statFields } from '../../lib/process/proc-stat.ts';

export interface ProcessTree {
  readonly pids: readonly number[];
  /** Processes and threads, which is what the kernel counts too. */
  readonly tasks: number;
}

/** Null when `root` is gone. */
export function processTree(root: number): ProcessTree | null {
  const walk = existsSync('/proc/thread-self/children') ? walkChildren : walkParents;
  let tree = walk(root);
  // A process that ended during the walk may have handed children to the first one after its list was read: look again,
  // or a program that keeps forking and leaving is never seen.
  for (let again = 0; again < 2 && tree !== null && tree.vanished; again++) tree = walk(root);
  return tree && { pids: tree.pids, tasks: tree.tasks };
}

/** The kernel's start time of a process in clock ticks; with the pid it names one process for ever. Null: no such process. */
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
  // A Set visits what is added while it is being visited.
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

/** For a kernel built without the list of children: every process of the machine, joined by its parent. */
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

/** Only a process that ended is nothing. Any other failure must not make a sandbox look smaller than it is. */
export function unlessGone<T>(look: () => T, gone: T): T {
  try {
    return look();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ESRCH') return gone;
    throw error;
  }
}
