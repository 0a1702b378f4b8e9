// test/web/budget.full.test.ts: what is used of a budget over all tasks, in the settings and on a task's page.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { giveTo } from '../harness.ts';
import { openSpending } from '../../src/store/spending.ts';
import { createPlace } from './browser.ts';

test('the settings and a task tell what is used of a budget over all tasks', async () => {
  await using place = await createPlace();
  const { machine } = place;
  const folder = join(machine.home, '.config/ags');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.yaml'), 'tasks:\n  budget: 20/day\n');
  {
    using spending = openSpending(machine.stateDir, () => new Date());
    spending.add({ project: '/elsewhere', task: 'other', costMicros: 3_200_000 });
  }
  giveTo(machine.stateDir, machine.uid);
  giveTo(folder, machine.uid);
  const started = await machine.ags(['start', 'one', 'say: Done.', '--agent', 'demo']);
  expect(started.code, started.stderr).toBe(0);
  await using window = await place.open('/settings');
  const { page } = window;
  await page.getByText('Budget per day, all tasks').waitFor();
  await page.getByText('$3.20 of $20.00 used').waitFor();
  await page.goto(new URL(place.task('one'), page.url()).href);
  await page.getByText('$3.20 of $20.00 today').waitFor();
});
