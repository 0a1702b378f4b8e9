// test/attacks/mutation/parts.ts: removes one protection of a single part of ags at a time, and shows that an attempt against that part
// then succeeds. The parts are the real ones, from a copy of their source with one replaced piece.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { sourceWith, type Piece, type Use } from './mutated-source.ts';

/** Attacks the part that `use` loads, and returns what succeeded, in words; empty if the part stopped everything. */
export type PartAttempt = (use: Use, dir: string) => Promise<string[]>;

export interface PartMutant<Part extends string = string> {
  readonly name: string;
  /** The attempt that must notice. */
  readonly by: Part;
  /** Several if one backs another up. */
  readonly pieces: readonly Piece[];
}

/** Makes rows of a table: `one` replaces several pieces, `off` a single one. */
export function mutantsOf<Part extends string>(): {
  one(by: Part, name: string, ...pieces: readonly Piece[]): PartMutant<Part>;
  off(by: Part, file: string, name: string, from: string, to?: string): PartMutant<Part>;
} {
  return {
    one: (by, name, ...pieces) => ({ name, by, pieces }),
    off: (by, file, name, from, to = '') => ({ name, by, pieces: [[file, from, to]] }),
  };
}

/** Returns `what` if `act` does not refuse it. */
export async function allowed(what: string, act: () => unknown): Promise<string[]> {
  try {
    await act();
    return [what];
  } catch {
    return [];
  }
}

export function tryParts<Part extends string>(
  parts: Readonly<Record<Part, PartAttempt>>,
  mutants: readonly PartMutant<Part>[],
): void {
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'ags-parts-')));
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));
  const unnoticed = new Set(mutants.map(({ name }) => name));
  const attempt = (part: Part, use: Use): Promise<string[]> => parts[part](use, mkdtempSync(join(scratch, 'at-')));

  test.for(Object.keys(parts) as Part[])('the unchanged part stops every attempt: %s', async (part) => {
    expect(await attempt(part, sourceWith([], scratch))).toEqual([]);
  });

  test.for(mutants.map((mutant) => [mutant.name, mutant] as const))(
    'without "%s", an attempt succeeds',
    async ([name, mutant]) => {
      expect(await attempt(mutant.by, sourceWith(mutant.pieces, scratch))).not.toEqual([]);
      unnoticed.delete(name);
    },
  );

  test('every protection is missed by an attempt', () => {
    expect([...unnoticed]).toEqual([]);
  });
}
