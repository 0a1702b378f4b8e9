// store/spending.ts: what the agents of this user have cost: one file for each local day, one line for each answer of a model.
// Invariant: append only, and each line is one write: any number of runners write at once, and what a task has cost stays when its
// runner is killed or the task is removed.
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { createLines } from '../lib/stream/lines.ts';
import { followFile } from '../lib/stream/follow-file.ts';

export interface Spending extends Disposable {
  add(cost: { readonly project: string; readonly task: string; readonly costMicros: number }): void;
  /** Since the beginning of the local day or month. `project`: of its tasks only; null: of all. */
  spent(per: 'day' | 'month', project: string | null): number;
}

/** Keeps what it has read, so that asking again reads only what was added since. */
export function openSpending(stateDir: string, now: () => Date): Spending {
  const directory = join(stateDir, 'spending');
  const days = new Map<string, Day>();
  const day = (name: string): Day => {
    const known = days.get(name) ?? openDay(join(directory, name));
    days.set(name, known);
    return known;
  };
  return {
    add(cost) {
      const name = fileOf(now());
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      if (!existsSync(join(directory, name))) removeOld(directory, name);
      const fd = openSync(join(directory, name), 'a', 0o600);
      try {
        // The line break before it ends a line that a full disk has cut.
        writeSync(fd, `\n${JSON.stringify({ at: now().toISOString(), ...cost })}\n`);
      } finally {
        closeSync(fd);
      }
    },
    spent(per, project) {
      const today = fileOf(now());
      const names = per === 'day' ? [today] : filesOf(directory).filter((name) => name.startsWith(today.slice(0, 7)));
      return names.reduce((sum, name) => sum + day(name).spent(project), 0);
    },
    [Symbol.dispose]() {
      for (const one of days.values()) one.close();
    },
  };
}

interface Day {
  spent(project: string | null): number;
  close(): void;
}

function openDay(file: string): Day {
  const byProject = new Map<string, number>();
  const lines = createLines(MAX_LINE, (line) => {
    const { project, costMicros } = readLine(line);
    byProject.set(project, (byProject.get(project) ?? 0) + costMicros);
  });
  const follower = followFile(file, (chunk) => lines.push(chunk));
  return {
    spent(project) {
      follower.readOn();
      if (project !== null) return byProject.get(project) ?? 0;
      return [...byProject.values()].reduce((sum, micros) => sum + micros, 0);
    },
    close: () => follower.close(),
  };
}

const MAX_LINE = 64 * 1024;

function readLine(line: string): { project: string; costMicros: number } {
  try {
    const { project, costMicros } = JSON.parse(line) as { project?: unknown; costMicros?: unknown };
    if (typeof project === 'string' && typeof costMicros === 'number') return { project, costMicros };
  } catch {
    // An empty line, or one that a full disk has cut.
  }
  return { project: '', costMicros: 0 };
}

/** By the clock of this machine's time zone, as users count days. */
function fileOf(at: Date): string {
  const two = (number: number): string => String(number).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}.jsonl`;
}

const filesOf = (directory: string): string[] =>
  existsSync(directory) ? readdirSync(directory).filter((name) => /^\d{4}-\d\d-\d\d\.jsonl$/.test(name)) : [];

/** No budget looks back further than a month. */
function removeOld(directory: string, today: string): void {
  for (const name of filesOf(directory).toSorted().slice(0, -MOST_DAYS))
    if (name < today) rmSync(join(directory, name));
}

const MOST_DAYS = 62;
