// test/exec/not-found.test.ts: a command that does not exist inside is explained; exit status 127 alone is not.
// needs: sandbox
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createAgentMachine } from '../agent-run/place.ts';
import { createMachine, giveTo, ONE } from '../harness.ts';

test('a command that is not in the sandbox is reported with the reason', async () => {
  using machine = createMachine(ONE);
  const tools = join(machine.home, 'my tools');
  mkdirSync(tools);
  writeFileSync(join(tools, 'mine'), '#!/bin/sh\necho mine\n', { mode: 0o755 });
  mkdirSync(join(machine.home, 'tools'));
  writeFileSync(join(machine.home, 'tools/mine'), '#!/bin/sh\n', { mode: 0o755 });
  machine.write('run.sh', '#!/bin/sh\nexit 127\n', 0o755);
  machine.write('.envrc', '#!/bin/sh\n', 0o755);
  for (const directory of [tools, join(machine.home, 'tools')]) giveTo(directory, machine.uid);
  const env = { PATH: `${machine.env['PATH'] ?? ''}:${tools}` };
  const said = async (...command: string[]): Promise<string> => {
    const { code, stderr } = await machine.ags(['exec', ...command], { env });
    expect(code).toBe(127);
    return stderr.split('\n').find((line) => line.startsWith('ags: ')) ?? '';
  };
  expect(await said('nothing-like-it')).toBe(
    'ags: nothing-like-it was not found in the sandbox: it is not installed on this machine, or not in your PATH.',
  );
  expect(await said('mine')).toBe(
    `ags: mine was not found in the sandbox: it is in your home, which is hidden (${tools}/mine). Show it: --mount '${tools}'`,
  );
  expect(await machine.ags(['exec', '--mount', tools, '--', 'mine'], { env })).toMatchObject({ stdout: 'mine\n' });
  expect(await said('echo one two')).toContain("Use a shell: ags exec -- sh -c 'echo one two'");
  expect(await said('gemini')).toContain('Gemini CLI is not installed. Install it for ags: ags agents install gemini');
  expect(await said('./.envrc')).toContain('the project hides it. Show it: --reveal .envrc');
  machine.write('old.sh', '#!/no/such/perl -w\n', 0o755);
  machine.write('mine.sh', `#! ${machine.home}/tools/mine\n`, 0o755);
  expect(await said('./old.sh')).toMatch(
    /old\.sh needs \/no\/such\/perl, which was not found in the sandbox: there is no such program on this machine\.$/,
  );
  expect(await said('./mine.sh')).toContain(
    `needs ${machine.home}/tools/mine, which was not found in the sandbox: it is in your home, which is hidden`,
  );
  // A program that exists ends with 127 for reasons of its own.
  expect(await said('./run.sh')).toBe('');
  expect(await said('sh', '-c', 'nothing-like-it')).toBe('');
}, 60_000);

test('the command of a task that is not in the sandbox fails the task with the reason', async () => {
  using machine = createAgentMachine(ONE);
  const failed = async (name: string, command: string): Promise<unknown> => {
    await machine.ags(['start', name, 'go', '--agent', command]);
    return machine.run(name);
  };
  expect(await failed('one', 'nothing-like-it --flag')).toMatchObject({
    state: 'failed',
    reason: 'nothing-like-it was not found in the sandbox: it is not installed on this machine, or not in your PATH.',
  });
  expect(await failed('two', 'cd src')).toMatchObject({
    reason: expect.stringContaining('it is part of a shell, and no program. Use a shell: sh -c "cd ..."') as string,
  });
  expect(await failed('three', 'sh -c nothing-like-it')).toMatchObject({ reason: 'sh: it ended with 127.' });
}, 60_000);
