// test/hooks/config.test.ts: `hooks` in the configuration.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { approvalOf, approve } from '../../src/config/trust.ts';
import { createFixture, type Fixture } from '../config/config-fixture.ts';

let at: Fixture;
beforeEach(() => {
  at = createFixture();
});
afterEach(() => at[Symbol.dispose]());

test('by default there are no hooks, and each has ten seconds', async () => {
  expect((await at.load()).hooks).toEqual({ use: [], commands: [], timeoutSeconds: 10 });
});

test('layers add hooks, and no layer removes one', async () => {
  at.user(
    'hooks:\n  use: [log, no-secrets]\n  timeout: 1m30s\n  pre-bash:\n    - run: [~/bin/check, -x]\n    - { run: "a | b", timeout: 5s }\n',
  );
  at.project('hooks:\n  use: [log, format]\n  pre-bash: [{ run: [./fmt], inside: true }]\n');
  const { hooks, origins } = await at.load();
  const mine = at.input.userConfigFile;
  expect(hooks).toEqual({
    use: ['log', 'no-secrets', 'format'],
    timeoutSeconds: 90,
    commands: [
      {
        point: 'pre-bash',
        run: [`${at.input.home}/bin/check`, '-x'],
        timeoutSeconds: null,
        inside: false,
        origin: `${mine}:5`,
      },
      { point: 'pre-bash', run: 'a | b', timeoutSeconds: 5, inside: false, origin: `${mine}:6` },
      { point: 'pre-bash', run: ['./fmt'], timeoutSeconds: null, inside: true, origin: 'ags.yaml:3' },
    ],
  });
  expect([origins['hooks.use[0]'], origins['hooks.use[2]'], origins['hooks.timeout']]).toEqual([
    `${mine}:2`,
    'ags.yaml:2',
    `${mine}:3`,
  ]);
});

test.each([
  [
    'hooks: { pre-bash: [{ run: [scripts/x.sh] }] }',
    'hooks.pre-bash[0].run: "scripts/x.sh" is neither the name of a program nor an absolute path',
  ],
  ['hooks: { pre-bash: [{ run: [] }] }', 'expected a program and its arguments as a list, or a text for sh -c'],
  ['hooks: { pre-bash: [{ run: 5 }] }', 'expected a program and its arguments as a list, or a text for sh -c'],
  ['hooks: { pre-bash: [{ timeout: 5s }] }', 'expected a program and its arguments as a list, or a text for sh -c'],
  ['hooks: { pre-bash: [{ run: x, timeout: 5 }] }', 'expected a time from 1s to 10m'],
  ['hooks: { pre-bash: [{ run: x, timeout: 0s }] }', 'expected a time from 1s to 10m'],
  ['hooks: { timeout: 11m }', 'expected a time from 1s to 10m'],
  ['hooks: { pre-bash: [x] }', 'hooks.pre-bash[0]: expected'],
  ['hooks: { pre-bsh: [{ run: x }] }', 'did you mean "pre-bash"?'],
  ['hooks: { use: [logs] }', 'expected log, protect-branches, no-secrets or format'],
])('%s is an error that names the expected form', async (text, message) => {
  at.user(text);
  expect(await at.problem()).toMatchObject({ code: 'config.invalid', message: expect.stringContaining(message) });
});

test("a project's commands need approval word for word; built-in hooks and hooks inside do not", async () => {
  at.project(
    'hooks:\n  use: [log, format]\n  pre-any:\n    - run: "rm -rf ~ # \\"x\\""\n    - { run: [a, "b c"], timeout: 1m }\n    - { run: anything, inside: true }\n',
  );
  expect(await at.asks()).toEqual([
    String.raw`ags.yaml:4: hooks.pre-any: run on this machine before whatever an agent does: "rm -rf ~ # \"x\""`,
    'ags.yaml:5: hooks.pre-any: run on this machine before whatever an agent does: ["a","b c"] for up to 60s',
  ]);
  at.user('hooks: { pre-any: [{ run: [a, "b c"], timeout: 60s }] }');
  expect(await at.asks()).toHaveLength(1);
});

test('a new approval of ags.yaml keeps the approval of hook files', () => {
  const hook = { path: '.ags/hooks/pre-bash', point: 'pre-bash', sha256: 'a'.repeat(64) } as const;
  const one = { ...at.input, bytes: Buffer.from('1'), asks: [], now: new Date(0) };
  mkdirSync(at.input.stateDir, { recursive: true });
  approve({ ...one, hooks: [hook] });
  approve({ ...one, bytes: Buffer.from('2') });
  expect(approvalOf(at.input.stateDir, at.input.projectDir)?.hooks).toEqual({ [hook.path]: hook.sha256 });
  approve({ ...one, hooks: [] });
  expect(approvalOf(at.input.stateDir, at.input.projectDir)?.hooks).toBe(undefined);
});

test('damaged approvals are an error, not an approval', () => {
  mkdirSync(at.input.stateDir, { recursive: true });
  const entry = { sha256: 'x', asks: [], hooks: 'all', at: '' };
  writeFileSync(join(at.input.stateDir, 'trust.json'), JSON.stringify({ version: 1, projects: { '/x': entry } }));
  expect(() => approvalOf(at.input.stateDir, at.input.projectDir)).toThrow('cannot be read');
});
