// test/e2e/merge-kill.full.test.ts: ags is killed at any moment of a merge or an undo. The next command finds the repository in the state
// before or after, with its files, its index and its branch in agreement.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentTask } from '../agent-run/agent-task.ts';
import { createMachine, type Machine, USUAL } from '../harness.ts';
import { killed } from './leftovers.ts';

const FILES = Array.from({ length: 40 }, (_, i) => `f${String(i).padStart(2, '0')}.txt`);
const ROUNDS = 20;

function isPending(machine: Machine): boolean {
  const merges = join(machine.stateDir, 'merges');
  return readdirSync(merges).some((name) => existsSync(join(merges, name, 'pending.json')));
}

/** 'before' or 'after' if branch, files and index agree, else a description. */
function stateOf(machine: Machine, base: string): string {
  const tip = machine.git('rev-parse', 'refs/heads/main').trim();
  const status = machine.git('status', '--porcelain');
  const texts = new Set(FILES.slice(0, -1).map((name) => (machine.has(name) ? machine.read(name) : 'gone')));
  const there = [machine.has(FILES.at(-1) ?? ''), machine.has('made/new.txt')];
  const orphans = readdirSync(machine.project).filter((name) => name.startsWith('.ags-tmp-'));
  const seen = JSON.stringify([tip === base, status, [...texts], there, orphans]);
  if (seen === JSON.stringify([true, '', ['old\n'], [true, false], []])) return 'before';
  if (seen === JSON.stringify([false, '', ['new\n'], [false, true], []])) return 'after';
  return seen;
}

describe.each(USUAL)('as %s', (caller) => {
  test('A158: a killed merge or undo is done completely or not at all', async () => {
    using machine = createMachine(caller, {
      disk: true,
      files: Object.fromEntries(FILES.map((name) => [name, 'old\n'])),
    });
    const task = await agentTask(
      machine,
      `for f in f*.txt; do echo new > $f; done; rm ${FILES.at(-1)}; mkdir made; echo n > made/new.txt`,
    );
    expect((await machine.ags(['merge', task.id])).code).toBe(0);
    expect(stateOf(machine, task.base)).toBe('after');
    const seen = { hits: 0, before: 0, after: 0, cutOff: 0 };
    let state = 'after';
    for (let round = 0; round < ROUNDS; round++) {
      // Alternates between moments around the merge itself and any other, for example during its cleanup.
      const [afterMs, begun] =
        round % 2 === 0 ? [(round * 7) % 40, (): boolean => isPending(machine)] : [150 + 25 * round, undefined];
      if (await killed(machine, state === 'before' ? ['merge', task.id] : ['undo'], afterMs, begun)) seen.hits++;
      if (isPending(machine)) seen.cutOff++;
      const listed = await machine.ags(['list']);
      expect(listed.code, listed.stderr).toBe(0);
      state = stateOf(machine, task.base);
      expect({ round, afterMs, state }).toEqual({
        round,
        afterMs,
        state: expect.stringMatching(/^(before|after)$/) as string,
      });
      seen[state as 'before' | 'after']++;
    }
    expect(machine.git('fsck', '--strict')).not.toMatch(/error|missing|broken/);
    expect(Math.min(seen.hits, seen.cutOff)).toBeGreaterThan(0);
    if (state === 'after') expect((await machine.ags(['undo'])).code).toBe(0);
    expect((await machine.ags(['merge', task.id])).code).toBe(0);
    expect(stateOf(machine, task.base)).toBe('after');
  }, 300_000);
});
