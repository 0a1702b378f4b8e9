// store/attacked.ts: results of `ags doctor --attack`, by the key of each sandbox's configuration. One small file.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { remember } from '../lib/remember.ts';

export interface AttackedBefore {
  /** Attempts that were stopped or limited, and attempts in all. */
  readonly held: number;
  readonly of: number;
  readonly atMs: number;
}

const KEPT = 50;

export function keepAttacked(stateDir: string, key: string, result: AttackedBefore): void {
  const others = Object.entries(readAttacked(stateDir)).filter(([other]) => other !== key);
  const latest = [...others, [key, result] as const].toSorted(([, a], [, b]) => b.atMs - a.atMs).slice(0, KEPT);
  remember(fileOf(stateDir), JSON.stringify(Object.fromEntries(latest)));
}

/** A missing or unreadable file claims nothing. */
export function readAttacked(stateDir: string): Readonly<Record<string, AttackedBefore>> {
  try {
    return JSON.parse(readFileSync(fileOf(stateDir), 'utf8')) as Record<string, AttackedBefore>;
  } catch {
    return {};
  }
}

/** For the sandbox of a task; null: no sandbox like it was attacked. */
export function attackedOf(taskRoot: string, key: string | undefined): AttackedBefore | null {
  return key === undefined ? null : (readAttacked(stateOf(taskRoot))[key] ?? null);
}

export function attackedFile(taskRoot: string): string {
  return fileOf(stateOf(taskRoot));
}

function stateOf(taskRoot: string): string {
  return dirname(dirname(taskRoot));
}

function fileOf(stateDir: string): string {
  return join(stateDir, 'attacked.json');
}
