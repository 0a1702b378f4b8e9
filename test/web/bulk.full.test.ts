// test/web/bulk.full.test.ts: stops and restarts several tasks at once, and searches task histories, in a browser.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPlace, type Place } from './browser.ts';

let place: Place;
beforeAll(async () => {
  place = await createPlace();
});
afterAll(() => place[Symbol.asyncDispose]());

test('several tasks stop together unless the user undoes it in time, and restart together', async () => {
  const { machine } = place;
  // With one slot, one task runs and the other is queued; both can be stopped.
  for (const name of ['left', 'right'])
    await machine.ags(['start', name, `Wait ${name}\nwait: 600`, '--agent', 'demo', '--max-parallel', '1', '--detach']);
  await machine.until('left', ['running']);
  await using window = await place.open('/favicon.svg');
  const { page, complaints } = window;
  await page.clock.install();
  const asked: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') asked.push(new URL(request.url()).pathname);
  });
  await page.goto(new URL(place.tasks, page.url()).href);
  const row = (name: string) => page.getByRole('row').filter({ hasText: `Wait ${name}` });
  const bar = page.getByRole('toolbar', { name: 'Selected tasks' });
  for (const name of ['left', 'right']) await row(name).getByRole('checkbox').click();
  await bar.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('Stopping 2 tasks').waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.clock.fastForward(30_000);
  expect(asked).toEqual([]);
  expect([machine.run('left').state, machine.run('right').state]).toEqual(['running', 'queued']);

  await bar.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('Stopping 2 tasks').waitFor();
  expect(asked).toEqual([]);
  await page.clock.fastForward(6000);
  for (const name of ['left', 'right']) await machine.until(name, ['stopped']);
  await page.getByText('Stopped', { exact: true }).filter({ visible: true }).nth(1).waitFor();
  expect(asked.toSorted()).toEqual(['/api/tasks/left/stop', '/api/tasks/right/stop']);
  await bar.getByRole('button', { name: 'Restart' }).click();
  await page.getByText('2 tasks restarted in a clean sandbox').waitFor();
  await page.getByText('Stopped', { exact: true }).filter({ visible: true }).first().waitFor({ state: 'detached' });
  for (const name of ['left', 'right']) await machine.ags(['rm', name, '--force', '--yes']);
  await row('left').waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
});

test('search finds a task by a word that only its history contains', async () => {
  const { machine } = place;
  await machine.runDemo('first', "Look around\nrun: printf 'zebr%s\\n' a");
  await machine.runDemo('second', 'Look around as well\nsay: nothing here');
  await using window = await place.open(`${place.tasks}?q=zebra`);
  const { page, complaints } = window;
  await page.getByText('1 found').waitFor();
  const rows = page.getByRole('row').filter({ has: page.getByRole('checkbox') });
  expect(await rows.count()).toBe(1);
  await rows.getByText('Look around', { exact: true }).first().waitFor();
  await page.getByRole('searchbox').fill('giraffe');
  await page.getByText('No matching tasks').waitFor();
  await page.getByRole('searchbox').fill('look');
  await page.getByText('2 found').waitFor();
  expect(complaints).toEqual([]);
});
