// test/attacks/git-programs.test.ts: the attempts on git check first for the programs they need: without one they would fail silently and
// count as stopped.
// needs: sandbox
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AGENT_ATTACKS } from '../../src/attack/table/agents.ts';
import { LONE_ATTACKS, GIT_ATTACKS, MERGE_ATTACKS } from '../../src/attack/table/git.ts';
import { PROGRAMS, scriptOf } from '../../src/attack/git-pipeline.ts';
import { createMachine, ONE } from '../harness.ts';

/** Runs the attempts with only these programs. `said` includes error messages. */
async function make(programs: readonly string[]): Promise<{ code: number | null; said: string }> {
  using machine = createMachine(ONE);
  const tools = join(machine.project, 'tools');
  mkdirSync(tools);
  for (const name of programs) symlinkSync(`/usr/bin/${name}`, join(tools, name));
  const all = [...GIT_ATTACKS, ...MERGE_ATTACKS, ...AGENT_ATTACKS, ...LONE_ATTACKS];
  const script = scriptOf(all, { RAN: '/tmp/ran', SIBLING: '/tmp/sibling', BASE: 'HEAD' });
  machine.write('script.sh', script.replace('exec 2> /dev/null', 'exec 2>&1'));
  const run = await machine.ags(['exec', '--review', 'later', '--', '/bin/sh', '-c', 'PATH=$PWD/tools; . ./script.sh']);
  return { code: run.code, said: run.stdout };
}

test('with the listed programs, every attempt finds each program that it needs', async () => {
  const { code, said } = await make(PROGRAMS);
  expect(code).toBe(0);
  // touch stands for the program that the host would run.
  expect(said.split('\n').filter((line) => /(?<!touch): (not found|inaccessible)/.test(line))).toEqual([]);
});

test('if a program is missing, no attempt is made and the program is named', async () => {
  expect(await make([])).toEqual({ code: 3, said: `not there: ${PROGRAMS.join(' ')}\n` });
  expect(await make(PROGRAMS.filter((name) => name !== 'cut'))).toEqual({ code: 3, said: 'not there: cut\n' });
});
