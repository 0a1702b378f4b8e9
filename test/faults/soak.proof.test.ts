// test/faults/soak.proof.test.ts: a short soak: parallel tasks succeed and leave nothing behind; and growth is distinguished from noise.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
// @ts-expect-error: plain JavaScript
import { growth as untyped } from '../../bench/trend.mjs';
import { createDice } from './dice.ts';

const growth = untyped as (samples: { at: number; value: number }[]) => number;
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

test('parallel tasks leave nothing behind, and no resource grows', () => {
  const args = ['scripts/soak.mjs', '--minutes', '0.05', '--parallel', '2', '--dry'];
  const done = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  expect(done.status, done.stdout + done.stderr).toBe(0);
  expect(done.stdout).toMatch(/that went wrong, or left something +at most 0 +0\.00 +met/);
  expect(done.stdout).toContain('memory of the server, MB');
}, 120_000);

const series = (value: (i: number) => number): { at: number; value: number }[] =>
  Array.from({ length: 60 }, (_, i) => ({ at: i * 1000, value: value(i) }));

test('a growing resource is distinguished from a fluctuating one', () => {
  const dice = createDice('noise');
  const noise = (): number => dice.share() * 40;
  expect(Math.abs(growth(series(() => 100 + noise())))).toBeLessThan(15);
  expect(Math.abs(growth(series((i) => (i % 9 === 0 ? 900 : 100))))).toBeLessThan(1);
  expect(growth(series((i) => 100 + i + noise()))).toBeGreaterThan(40);
  expect(growth([])).toBe(0);
});

test.each([
  ['--minutes', 'soon'],
  ['--parallel', '0'],
])('%s %s is refused in a sentence', (option, value) => {
  const done = spawnSync(process.execPath, [join(ROOT, 'scripts/soak.mjs'), option, value], { encoding: 'utf8' });
  expect(done).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining('takes a number above zero') });
});
