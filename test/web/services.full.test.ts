// test/web/services.full.test.ts: chooses services for a task and reads their state and logs, in a browser.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPlace, expectAccessible, type Place } from './browser.ts';

let place: Place;
beforeAll(async () => {
  place = await createPlace({
    'README.md': '# project\n',
    'ags.yaml': `services:\n  cache: redis\n  queue: redis\n  bad: { run: "echo '<b>no</b> luck'; exit 3", ports: [4000] }\n`,
  });
});
afterAll(() => place[Symbol.asyncDispose]());

test('the user deselects a service, and the task page shows the state of the others', async () => {
  await using window = await place.open(place.tasks);
  const { page, complaints } = window;
  const box = page.getByRole('textbox', { name: /What should an agent do/ });
  await box.fill('run: redis-cli -h cache ping // run: getent hosts queue || echo none // wait: 600');
  const chip = page.getByRole('button', { name: '3 services: services' });
  await chip.click();
  await page.getByRole('menuitemcheckbox', { name: 'queue redis' }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'cache, bad: services' }).waitFor();
  await page.getByRole('button', { name: /: agent$/ }).click();
  await page.getByRole('menuitem', { name: /Demo/ }).click();
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.getByText('1 task started').waitFor();
  const [task = ''] = place.machine.tasks();
  try {
    await page.goto(new URL(place.task(task), page.url()).href);
    const services = page.getByRole('region', { name: 'Services' });
    await services.locator('[data-service=cache]').getByText('healthy').waitFor();
    await services.getByText('redis://cache:6379', { exact: true }).waitFor();
    const bad = services.locator('[data-service=bad]');
    await bad.getByText('failed', { exact: true }).waitFor();
    await bad.getByText('<b>no</b> luck').waitFor();
    expect(await services.locator('[data-service=queue]').count()).toBe(0);
    await page.getByRole('feed').getByText('The service bad ended with 3.').first().waitFor();
    await services.getByRole('button', { name: 'Show log of cache' }).click();
    await services.getByRole('group', { name: 'Log of cache' }).getByText('Ready to accept connections').waitFor();
    await expectAccessible(page);
  } finally {
    await place.machine.ags(['stop', task]);
  }
  await page.getByRole('region', { name: 'Services' }).locator('[data-service=cache]').getByText('stopped').waitFor();
  // A stopped service has no URL.
  expect(await page.getByText('redis://cache:6379').count()).toBe(0);
  expect(complaints).toEqual([]);
});
