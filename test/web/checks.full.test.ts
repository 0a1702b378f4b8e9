// test/web/checks.full.test.ts: runs, watches, stops and reads checks of a selection, in a browser.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAccessible, picture, seen, type Place } from './browser.ts';
import { bar, clean, createReviews, openReview } from './review-place.ts';

const FILES = {
  'README.md': '# project\n',
  'ags.yaml':
    "checks:\n  - {name: slow, run: 'if [ -e slow.txt ]; then echo it waits; sleep 6051; fi'}\n  - {name: words, run: 'seq 30; ! grep -rn BROKEN --include=*.txt .'}\n",
};
const GOAL = 'write: broken.txt BROKEN <b>bold</b> // write: fine.txt fine // write: slow.txt slow';

let place: Place;
beforeAll(async () => {
  place = await createReviews(FILES, {
    work: GOAL,
    keys: GOAL,
    look: 'write: fine.txt fine',
    dark: 'write: fine.txt fine',
    other: GOAL,
  });
});
afterAll(() => place[Symbol.asyncDispose]());

const tick = async (page: Page, name: string): Promise<void> =>
  page.getByRole('treeitem', { name }).locator('[data-tick]').click();
const words = (page: Page, text: string | RegExp): Promise<void> =>
  bar(page).getByText(text).waitFor({ timeout: 30_000 });

test('the user runs checks, stops them, excludes the file that fails them, and always sees which selection they are for', async () => {
  await using at = await openReview(place, 'work');
  const { page } = at;
  await clean(page);
  await words(page, 'Checks not run for this selection.');
  await bar(page).getByRole('button', { name: 'Run checks' }).click();
  await words(page, /Checks running: slow \d+s/);
  await picture(page, 'checks-running');
  await bar(page).getByRole('button', { name: 'Show output' }).click();
  const pane = page.getByRole('dialog', { name: 'Checks' });
  await pane.getByText('it waits').waitFor();
  await page.keyboard.press('Escape');
  await bar(page).getByRole('button', { name: 'Stop' }).click();
  await words(page, 'Checks ended without a result');

  await tick(page, 'slow.txt');
  await clean(page);
  await words(page, 'Checks not run for this selection.');
  await bar(page).getByRole('button', { name: 'Run checks' }).click();
  await words(page, 'Checks failed: words: ./broken.txt:1:BROKEN <b>bold</b>');
  await bar(page).getByRole('button', { name: 'Show output' }).click();
  await pane.getByText('For the current selection: 2 files onto main').waitFor();
  expect(await pane.getByRole('listitem').allInnerTexts()).toEqual([
    expect.stringMatching(/^Passed\s+slow\s+exit 0, /),
    expect.stringMatching(/^Failed\s+words\s+exit 1, [\s\S]*Show 19 more lines[\s\S]*BROKEN <b>bold<\/b>/),
  ]);
  await picture(page, 'checks-failed');
  await page.keyboard.press('Escape');

  await tick(page, 'broken.txt');
  await clean(page);
  await words(page, 'Checks not run for this selection.');
  await bar(page).getByRole('button', { name: 'Run checks' }).click();
  await words(page, 'Checks passed');
  await tick(page, 'broken.txt');
  await words(page, 'Checks not run for this selection.');
  await tick(page, 'broken.txt');
  await words(page, 'Checks passed');
  expect(at.complaints).toEqual([]);
});

test('a shortcut runs the checks, and the list and the comparison show the result', async () => {
  await using at = await openReview(place, 'keys');
  const { page } = at;
  await clean(page);
  await tick(page, 'slow.txt');
  await clean(page);
  await page.keyboard.press('?');
  await page.getByRole('dialog').getByText('Run checks').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('t');
  await words(page, /Checks failed/);
  await using list = await place.open(place.tasks);
  const row = list.page.locator('[data-task=keys]');
  await row.getByText('Checks failed').filter({ visible: true }).waitFor();
  await expectAccessible(list.page);
  await using compare = await place.open(`${place.tasks}/compare/keys/other`);
  const line = compare.page.getByRole('row', { name: /^Checks/ });
  await expect.poll(() => line.innerText()).toMatch(/Checks\s+Checks failed: words: .*BROKEN.*\s+Checks not run/);
});

describe.each(['light', 'dark'] as const)('in the %s', (theme) => {
  test('checks are accessible, also in a narrow window', async () => {
    // Each theme uses its own task, because a result would be shared.
    await using at = await openReview(place, theme === 'light' ? 'look' : 'dark', theme);
    const { page } = at;
    await clean(page);
    await page.keyboard.press('t');
    await words(page, 'Checks passed');
    await expectAccessible(page);
    await bar(page).getByRole('button', { name: 'Show output' }).click();
    await seen(page, 'For the current selection: 1 file onto main');
    await picture(page, `checks-${theme}`);
    await expectAccessible(page);
    await page.setViewportSize({ width: 320, height: 700 });
    await picture(page, `checks-narrow-${theme}`);
    await expectAccessible(page);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320);
    await page.keyboard.press('Escape');
    await picture(page, `checks-narrow-bar-${theme}`);
    await expectAccessible(page);
    expect(at.complaints).toEqual([]);
  });
});

test('without configured checks, the page suggests commands from the project files and runs them', async () => {
  const { machine } = place;
  machine.write('ags.yaml', '');
  machine.write('package.json', '{"scripts":{"test":"echo tested","build":"x"}}\n');
  machine.git('add', '-A');
  machine.git('commit', '-qm', 'scripts');
  await using at = await openReview(place, 'look');
  const { page } = at;
  await clean(page);
  await words(page, 'No checks configured. Suggested: npm test');
  await bar(page).getByRole('button', { name: 'Show output' }).click();
  await page.getByText('checks: ["npm test"]').waitFor();
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await bar(page).getByRole('button', { name: 'Run checks' }).click();
  await words(page, 'Checks passed');
  await bar(page).getByRole('button', { name: 'Show output' }).click();
  await page.getByRole('dialog').getByText('tested', { exact: false }).first().waitFor();
});

test('required checks disable Merge with a reason, and the merge shortcut leads to Run checks', async () => {
  const { machine } = place;
  machine.write('ags.yaml', "checks: ['test -e fine.txt']\nmerge: {check: true}\n");
  machine.git('add', '-A');
  machine.git('commit', '-qm', 'required');
  await using at = await openReview(place, 'keys');
  const { page } = at;
  await clean(page);
  const merge = bar(page).getByRole('button', { name: /^Merge \d file/ });
  const about = async (): Promise<string | null> => {
    const id = await merge.getAttribute('aria-describedby');
    return id === null ? null : page.locator(`#${id}`).innerText();
  };
  expect([await merge.isDisabled(), await about()]).toEqual([true, 'Checks must pass before you can merge.']);
  await picture(page, 'checks-required');
  await expectAccessible(page);
  // The merge shortcut says why nothing can be merged; another one runs the checks.
  await page.keyboard.press('m');
  await page.getByText('The checks must pass first.').waitFor();
  await page.keyboard.press('t');
  await words(page, 'Checks passed');
  await expect.poll(() => merge.isEnabled(), { timeout: 20_000 }).toBe(true);
  expect(await about()).toBe(null);
  await tick(page, 'broken.txt');
  await expect.poll(() => merge.isDisabled(), { timeout: 20_000 }).toBe(true);
  await tick(page, 'broken.txt');
  await expect.poll(() => merge.isEnabled(), { timeout: 20_000 }).toBe(true);
  await merge.click();
  await words(page, /merged into main/);
  expect(machine.has('fine.txt')).toBe(true);
  expect(at.complaints).toEqual([]);
});
