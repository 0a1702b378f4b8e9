// review/fact.ts: a fact for the reviewer: one sentence and its level, and the file it is about.
import { visible } from '../lib/sanitize.ts';
import type { FileState } from '../protocol/changes.ts';

/** 'host' and 'ci' decide the lane; 'look' only informs the reviewer. */
export type Level = 'host' | 'ci' | 'look';

export interface Fact {
  readonly level: Level;
  readonly say: string;
}

export interface Content {
  readonly mode: FileState['mode'];
  /** For a symlink, its target. Null for a file that is binary or too large to read. */
  readonly text: string | null;
  readonly bytes: number;
  /** The first bytes (16 suffice) of a file without text. Without them it counts as a program, unless its name is that of a media file. */
  readonly head?: Uint8Array | undefined;
}

export interface ClassifyInput {
  readonly path: string;
  /** The path before a rename; it counts as much as the new one. */
  readonly from?: string | undefined;
  readonly before: Content | null;
  readonly after: Content | null;
}

/** Sorts the most serious first; the sort is stable. */
export function bySeverity(facts: readonly Fact[]): Fact[] {
  return facts.toSorted((a, b) => RANK[a.level] - RANK[b.level]);
}

/** Makes text from a file safe to quote in a sentence: visible, short, and without the password of an address. */
export function quote(text: string): string {
  const shown = visible(text.slice(0, 400).trim()).replace(/:\/\/[^\s/@]{1,200}@/g, '://…@');
  return shown.length > 160 ? `${shown.slice(0, 160)}…` : shown;
}

const RANK: Readonly<Record<Level, number>> = { host: 0, ci: 1, look: 2 };
