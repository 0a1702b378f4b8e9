// test/web/tasks.full.test.ts: starts goals and navigates the task list, in a browser.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agreeTo, createPlace, type Place } from './browser.ts';

let place: Place;
beforeAll(async () => {
  place = await createPlace();
});
afterAll(() => place[Symbol.asyncDispose]());

test('several lines become several tasks, each with its agent, and their rows update live', async () => {
  await using window = await place.open('/');
  const { page, complaints } = window;
  await page.getByRole('heading', { name: /^Tasks in/ }).waitFor({ state: 'attached' });
  await page.getByText('No tasks yet').waitFor();
  const box = page.getByRole('textbox', { name: 'What should an agent do?' });
  await page.keyboard.press('c');
  await box.fill('- write: one.txt 1 // use: 420000\n- write: two.txt 2\n- write: three.txt 3');
  const preview = page.getByRole('list', { name: 'Goals to start' });
  expect(await preview.getByRole('listitem').count()).toBe(3);
  await page.getByRole('button', { name: 'Remove goal 3' }).click();
  await page.getByLabel('Agent for goal 2').selectOption('demo');
  await page.getByRole('button', { name: 'Start 2 tasks' }).click();
  const rows = page.getByRole('table', { name: 'Tasks' }).getByRole('row');
  await rows.filter({ hasText: 'one.txt' }).getByText('Ready').first().waitFor();
  await rows.filter({ hasText: 'two.txt' }).getByText('Ready').first().waitFor();
  await rows.filter({ hasText: 'one.txt' }).getByText('$0.42').filter({ visible: true }).waitFor();
  await rows.filter({ hasText: 'one.txt' }).getByText('1 file').filter({ visible: true }).waitFor();
  expect(await rows.filter({ hasText: 'one.txt' }).getByRole('link', { name: 'Review' }).count()).toBe(1);
  expect(await box.inputValue()).toBe('');
  expect(complaints).toEqual([]);
});

test('the task list works with the keyboard alone', async () => {
  await using window = await place.open(place.tasks);
  const { page, complaints } = window;
  await page.getByRole('table', { name: 'Tasks' }).waitFor();
  await page.keyboard.press('c');
  await page.keyboard.type('say: hello // wait: 600');
  await page.keyboard.press('Control+Enter');
  const row = page.getByRole('row').filter({ hasText: 'say: hello' });
  await row.getByText('Running').first().waitFor();
  // In the text field, letters trigger no shortcuts.
  await page.keyboard.type('jx?');
  expect(await page.getByRole('textbox', { name: 'What should an agent do?' }).inputValue()).toBe('jx?');
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });

  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.getByRole('toolbar', { name: 'Selected tasks' }).getByText('2 selected').waitFor();

  await page.keyboard.press('Control+k');
  await page.keyboard.type('say: hello');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: /say: hello/ }).waitFor();
  expect(page.url()).toContain('/t/say-hello');
  await agreeTo(page, 's', /^Stop /);
  await page.locator('header [data-state=stopped]').waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await page.getByRole('row').filter({ hasText: 'say: hello' }).getByText('Stopped').first().waitFor();
  expect(complaints).toEqual([]);
});

test('fast typing while the palette opens goes into its field and triggers no shortcuts', async () => {
  await using window = await place.open(place.tasks);
  const { page, complaints } = window;
  await page.getByRole('textbox', { name: 'What should an agent do?' }).waitFor();
  // In one synchronous step, faster than any user.
  const focused = await page.evaluate(`(async () => {
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }));
    await Promise.resolve().then(() => undefined);
    return document.activeElement.getAttribute('aria-label');
  })()`);
  expect(focused).toBe('Search or run a command');
  expect(complaints).toEqual([]);
});

test('a slow response does not overwrite newer live updates', async () => {
  await using window = await place.open(place.tasks);
  const { page, complaints } = window;
  const box = page.getByRole('textbox', { name: 'What should an agent do?' });
  await box.fill('write: late.txt 1 // wait: 2');
  await box.focus();
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  let answered = false;
  await page.route('**/api/tasks', async (route) => {
    if (route.request().method() !== 'GET') return route.fallback();
    const { json } = await place.machine.server.call('GET', '/api/tasks');
    await held;
    await route.fulfill({ json });
    answered = true;
  });
  await page.keyboard.press('Control+Enter');
  const row = page.getByRole('row').filter({ hasText: 'late.txt' });
  await row.getByText('Ready').first().waitFor();
  await page.evaluate(`{
    globalThis.shown = new Set();
    const note = () => [...document.querySelectorAll('[role=row]')]
      .filter((row) => row.textContent.includes('late.txt'))
      .forEach((row) => shown.add(row.querySelector('[data-state]')?.dataset.state));
    new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    note();
  }`);
  release();
  await expect.poll(() => answered).toBe(true);
  // Enough time for the page to apply the response.
  await page.waitForTimeout(1000);
  expect(await page.evaluate('[...shown]')).toEqual(['ready']);
  expect(complaints).toEqual([]);
});

test('attempts at one goal share an expandable row that links to their comparison', async () => {
  await using window = await place.open(place.tasks);
  const { page, complaints } = window;
  await page.getByRole('button', { name: /attempt/ }).click();
  await page.getByRole('menuitemradio', { name: '2 attempts' }).click();
  await page.getByRole('textbox', { name: 'What should an agent do?' }).fill('write: both.txt same');
  await page.getByRole('button', { name: 'Start 2 tasks' }).click();
  const line = page.getByRole('row').filter({ hasText: '2 attempts' });
  await line.getByText('Ready').filter({ visible: true }).nth(1).waitFor();
  expect(await page.getByRole('row').filter({ hasText: 'both.txt' }).count()).toBe(1);
  await line.getByRole('button', { name: 'Show attempts' }).click();
  expect(await page.getByRole('row').filter({ hasText: 'both.txt' }).count()).toBe(3);
  expect(await line.getByRole('link', { name: 'Compare' }).getAttribute('href')).toMatch(
    /\/compare\/[\w-]+-1\/[\w-]+-2$/,
  );
  // The page remembers the choice.
  await page.reload();
  await page.getByRole('button', { name: '2 attempts: ' }).waitFor();
  expect(complaints).toEqual([]);
});

test('search finds words in histories and states by is:, and is part of the URL', async () => {
  await using window = await place.open(`${place.tasks}?q=is%3Aready`);
  const { page } = window;
  const rows = page.getByRole('row').filter({ has: page.getByRole('checkbox') });
  await rows.filter({ hasText: 'one.txt' }).waitFor();
  expect(await rows.filter({ hasText: 'say: hello' }).count()).toBe(0);
  await page.keyboard.press('/');
  await page.getByRole('searchbox').fill('hello');
  await rows.filter({ hasText: 'say: hello' }).waitFor();
  await rows.filter({ hasText: 'one.txt' }).waitFor({ state: 'detached' });
  expect(page.url()).toContain('q=hello');
});

test('the user removes several tasks after a dialog that warns of unmerged changes', async () => {
  await using window = await place.open(place.tasks);
  const { page, complaints } = window;
  const row = (text: string) => page.getByRole('row').filter({ hasText: text });
  await row('one.txt').getByRole('checkbox').click();
  await row('two.txt').getByRole('checkbox').click();
  await page.getByRole('toolbar').getByRole('button', { name: 'Remove' }).click();
  const dialog = page.getByRole('dialog', { name: 'Remove 2 tasks?' });
  await dialog.getByText('2 tasks have unmerged changes').waitFor();
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await row('one.txt').waitFor({ state: 'detached' });
  await row('two.txt').waitFor({ state: 'detached' });
  // The rows disappear before the removal is complete.
  const listed = async (): Promise<string> => (await place.machine.ags(['list', '-q'])).stdout;
  await expect.poll(listed, { timeout: 30_000 }).not.toContain('one');
  expect(complaints).toEqual([]);
});

test('the user adds a project by its path, and the page opens it', async () => {
  const other = `${place.machine.home}/code/other`;
  place.machine.git('init', '-q', other);
  place.machine.git('-C', other, 'commit', '-q', '--allow-empty', '-m', 'first');
  await using window = await place.open('/');
  const { page, complaints } = window;
  await page.getByRole('button', { name: 'Add project' }).click();
  await page.getByRole('textbox', { name: 'Path or URL' }).fill(other);
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByRole('heading', { name: 'Tasks in other' }).waitFor({ state: 'attached' });

  // A second tab on the first project: each writes its project once, and neither corrects the other.
  const tab = await window.context.newPage();
  await tab.addInitScript('globalThis.changes = 0; addEventListener("storage", () => globalThis.changes++)');
  await tab.goto(new URL(place.tasks, page.url()).href);
  await tab.getByRole('textbox', { name: 'What should an agent do?' }).waitFor();
  await tab.waitForTimeout(500);
  expect(await tab.evaluate('globalThis.changes')).toBe(0);
  await tab.close();

  await page.getByRole('button', { name: 'Add project' }).click();
  await page.getByRole('textbox', { name: 'Path or URL' }).fill('/nowhere/at/all');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByRole('alert').waitFor();
  expect(complaints.filter((text) => !text.includes('status of 4'))).toEqual([]);
});
