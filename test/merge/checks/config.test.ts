// test/merge/checks/config.test.ts: the forms of `checks:`, and the errors for invalid ones.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createFixture, type Fixture } from '../../config/config-fixture.ts';

let at: Fixture;
beforeEach(() => void (at = createFixture()));
afterEach(() => at[Symbol.dispose]());

test("checks are a list with an optional time, of commands or named commands; the user's come first", async () => {
  at.user('checks: [make lint]\n');
  at.project(
    'checks:\n  run:\n    - npm test\n    - {name: types, run: npx tsc}\n  timeout: 10m\nmerge: {check: true}\n',
  );
  const { checks, mergeCheck, origins } = await at.load();
  expect(checks).toEqual({
    run: [
      { name: 'make lint', run: 'make lint' },
      { name: 'npm test', run: 'npm test' },
      { name: 'types', run: 'npx tsc' },
    ],
    timeoutSeconds: 600,
  });
  expect(mergeCheck).toBe(true);
  expect([origins['checks[1]'], origins['checks[2]'], origins['checks.timeout']]).toEqual([
    'ags.yaml:3',
    'ags.yaml:4',
    'ags.yaml:5',
  ]);
});

test('checks need no approval: they run in a sandbox without additional rights', async () => {
  at.project('checks: [npm test]\nmerge: {check: true}\n');
  expect(await at.asks()).toEqual([]);
});

test.each([
  [
    'checks: npm test\n',
    'ags.yaml:1:9: checks: expected a list of commands, or the keys run and timeout, found "npm test". Write a list: checks: [npm test]',
  ],
  ['checks: [1]\n', 'ags.yaml:1:10: checks[0]: expected a command, or the keys name and run, found 1'],
  ['merge: {check: yes}\n', 'ags.yaml:1:16: merge.check: expected true or false, found "yes"'],
])('%j is refused with its line', async (text, message) => {
  at.project(text);
  expect(await at.problem()).toEqual({ code: 'config.invalid', message });
});
