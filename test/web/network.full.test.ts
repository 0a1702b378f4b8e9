// test/web/network.full.test.ts: adds rules on the Network page for a run, a project and all projects, in a browser.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agreeTo, createPlace, type Place } from './browser.ts';

let place: Place;
beforeAll(async () => {
  place = await createPlace();
});
afterAll(() => place[Symbol.asyncDispose]());

test('the user allows a blocked host for a run, with the mouse and with the keyboard', async () => {
  const { machine } = place;
  const goal = 'fetch: https://one.test/ // fetch: https://two.test/ // wait: 600';
  await machine.ags(['start', 'tries', goal, '--agent', 'demo', '--max-parallel', '64', '--detach']);
  await machine.event('tries', 'network.denied', ({ host }) => host === 'two.test');
  await using window = await place.open(`${place.tasks}/network`);
  const { page, complaints } = window;
  const row = (host: string) => page.getByRole('listitem').filter({ has: page.getByTitle(host, { exact: true }) });
  await row('one.test').getByText('Blocked', { exact: true }).waitFor();
  await row('one.test').getByRole('button', { name: 'Allow for this run' }).click();
  await page.getByText('one.test is allowed in tries, until it ends.').waitFor();
  // The newest host is first: k moves up to it, a asks, Enter allows it.
  await row('two.test').waitFor();
  await page.keyboard.press('k');
  await agreeTo(page, 'a', 'Allow two.test for this run?');
  await page.getByText('two.test is allowed in tries, until it ends.').waitFor();
  // Only the runner knows these rules; no file contains them.
  const rules = await machine.server.call<{ rules: { action: string; text: string; origin: string }[] }>(
    'GET',
    '/api/network?task=tries',
  );
  expect(rules.json.rules.filter(({ text }) => /^(one|two)\.test/.test(text)).map(({ action }) => action)).toEqual([
    'allow',
    'allow',
  ]);
  expect(existsSync(join(machine.project, 'ags.yaml'))).toBe(false);
  await machine.ags(['rm', 'tries', '--force', '--yes']);
  expect(complaints).toEqual([]);
});

test('the user adds rules for the project and for all projects, and an invalid rule is refused', async () => {
  const { machine } = place;
  await using window = await place.open(`${place.tasks}/network?show=rules`);
  const { page, complaints } = window;
  const dialog = page.getByRole('dialog', { name: 'Add rule' });
  const add = async (host: string, ...choices: string[]): Promise<void> => {
    if (!(await dialog.isVisible())) await page.getByRole('button', { name: 'Add rule' }).click();
    await dialog.getByRole('textbox', { name: 'Host' }).fill(host);
    for (const choice of choices) await dialog.getByRole('button', { name: choice }).click();
    await dialog.getByRole('button', { name: 'Add rule' }).click();
  };
  const rule = (text: string) => page.getByRole('listitem').filter({ has: page.getByText(text, { exact: true }) });
  await add('http://');
  await dialog.getByRole('alert').waitFor();
  await add('cdn.example.com', 'Allow', 'This project');
  await dialog.waitFor({ state: 'detached' });
  await rule('cdn.example.com').getByText('Allow', { exact: true }).waitFor();
  await add('*.tracker.test', 'Deny', 'All my projects');
  await dialog.waitFor({ state: 'detached' });
  await rule('*.tracker.test').getByText('Deny', { exact: true }).waitFor();
  // Permanent: in the project's file and in the user's.
  expect(readFileSync(join(machine.project, 'ags.yaml'), 'utf8')).toContain('cdn.example.com');
  expect(readFileSync(join(machine.home, '.config/ags/config.yaml'), 'utf8')).toContain('*.tracker.test');
  const plan = await machine.ags(['net', 'rules']);
  expect(plan.stdout).toMatch(/cdn\.example\.com/);
  expect(plan.stdout).toMatch(/\*\.tracker\.test/);
  expect(complaints.filter((text) => !text.includes('status of 4'))).toEqual([]);
});
