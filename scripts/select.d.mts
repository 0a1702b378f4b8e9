// scripts/select.d.mts: the types of select.mjs, for the tests.
import type { TestFile } from './needs.d.mts';

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}
export function splitArgs(
  args: readonly string[],
  files: readonly string[],
): { named: string[]; options: string[]; unknown: string[] };
export function selectFiles(
  described: readonly TestFile[],
  wish: { tier: string; named: readonly string[]; isRoot: boolean },
): TestFile[];
export function skipLines(
  leftOut: readonly { file: string; missing: readonly string[] }[],
  skippedTests: readonly { file: string; why: string }[],
): string[];
export function countsLine(counts: Counts): string;
export function addCounts(all: readonly Counts[]): Counts;
