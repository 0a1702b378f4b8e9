// test/web/review.full.test.ts: the review in a real browser: look, comment, choose, try, merge, undo, with the mouse and without.
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ServerMachine } from '../server/place.ts';
import { expectAccessible, type Place } from './browser.ts';
import { createReviews, openReview, picture } from './review-place.ts';

const LINES = Array.from({ length: 60 }, (_, i) => `export const value${i + 1} = ${i + 1}; // number ${i + 1}`);
const FILES = {
  'README.md': '# project\n',
  'src/values.ts': `${LINES.join('\n')}\n`,
  'old.txt': 'old\n',
  'run.sh': '#!/bin/sh\necho hi\n',
  'docs/guide/start.md': '# Start\n\nHello\n',
};
const GOAL = [
  "run: sed -i -e '2s/.*/export const second = 2; \\/\\/ changed/' -e '50s/number/NUMBER/' src/values.ts",
  'write: package.json {"scripts":{"postinstall":"node x.js"}}',
  'write: src/new.ts export const when = new Date();',
  'run: chmod +x run.sh; ln -s ../outside link; head -c 3000 /dev/urandom > logo.bin; mv docs/guide/start.md docs/guide/begin.md',
  'delete: old.txt',
].join(' // ');

// One machine for all: each test has a task of its own, and leaves the branch as it was.
let place: Place;
let machine: ServerMachine;
beforeAll(async () => {
  place = await createReviews(FILES, { look: GOAL, journey: GOAL, newer: GOAL, keys: GOAL, conflict: GOAL });
  ({ machine } = place);
});
afterAll(() => place[Symbol.asyncDispose]());

const bar = (page: Page): Locator => page.getByRole('region', { name: 'Merge' });
const diff = (page: Page): Locator => page.getByRole('region', { name: 'Changes' });
const file = (page: Page, name: string): Locator => page.getByRole('treeitem', { name });
const part = (page: Page, n: number): Locator =>
  page.getByRole('checkbox', { name: new RegExp(`^Take part ${n} of 2`) });

test('somebody looks at changes, comments, takes files and parts, sees that it merges, merges and undoes it', async () => {
  await using at = await openReview(place, 'journey');
  const { page } = at;
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  await picture(page, 'review');
  // What can run code is told first, in sentences, and nothing of it is chosen.
  const warning = page.getByRole('region', { name: 'Files that can run code' });
  await expect.poll(() => warning.innerText()).toContain('Adds script postinstall: node x.js');
  await expect.poll(() => bar(page).innerText()).toContain('5 of 8 files');

  // A comment on a line, with the message as the agent will get it.
  await file(page, 'values.ts').click();
  const button = page.getByTitle('Comment on this line');
  await expect
    .poll(async () => {
      await diff(page).getByText('export const second').hover();
      // It is there for as long as the pointer is, and what is drawn anew takes it away.
      return button.click({ timeout: 2000 }).then(
        () => true,
        () => false,
      );
    })
    .toBe(true);
  await page.getByRole('textbox', { name: /^Comment on line 2 of src\/values.ts/ }).fill('Keep the <b>old</b> name.');
  await picture(page, 'review-comment');
  await page.getByRole('button', { name: 'Add comment' }).click();
  await page.getByRole('button', { name: 'Send 1 comment' }).click();
  const message = await page.getByLabel('The message').innerText();
  expect(message).toBe(
    'I looked at your changes and have a comment:\n\n1. src/values.ts, line 2\n   > export const second = 2; // changed\n   Keep the <b>old</b> name.\n',
  );
  await picture(page, 'review-tray');
  await page.getByRole('button', { name: 'Back' }).click();

  // One file less, and one part of another.
  await file(page, 'new.ts').locator('[data-tick]').click();
  await part(page, 2).click();
  await expect.poll(() => file(page, 'values.ts').getAttribute('aria-checked')).toBe('mixed');
  await expect.poll(() => bar(page).innerText()).toContain('4 of 8 files');
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  expect(machine.git('log', '--format=%s').trim()).toBe('first');

  await bar(page).getByRole('textbox', { name: 'Message of the commit' }).fill('Only what is wanted');
  await bar(page).getByRole('button', { name: 'Merge 4 files' }).click();
  await bar(page).getByText('4 files merged into main').waitFor();
  await picture(page, 'review-merged');
  expect(machine.git('log', '-1', '--format=%s').trim()).toBe('Only what is wanted');
  expect(machine.read('src/values.ts')).toBe(
    FILES['src/values.ts'].replace('export const value2 = 2; // number 2\n', 'export const second = 2; // changed\n'),
  );
  expect([machine.has('package.json'), machine.has('src/new.ts'), machine.has('old.txt')]).toEqual([
    false,
    false,
    false,
  ]);

  await bar(page).getByRole('button', { name: 'Undo' }).click();
  await bar(page).getByRole('button', { name: 'Merge 4 files' }).waitFor();
  expect(machine.read('src/values.ts')).toBe(FILES['src/values.ts']);
  expect(machine.git('status', '--porcelain')).toBe('');

  // Sent, the comments are one message of the user.
  await page.keyboard.press('Shift+C');
  await page.getByRole('button', { name: 'Send to the agent' }).click();
  await expect
    .poll(
      () => machine.events('journey').some((event) => JSON.stringify(event).includes('Keep the <b>old</b> name.')),
      {
        timeout: 20_000,
      },
    )
    .toBe(true);
  expect(at.complaints).toEqual([]);
});

test('what can run code cannot be taken before its difference was opened, by any way', async () => {
  await using at = await openReview(place, 'look');
  const { page } = at;
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  const risky = file(page, 'package.json');
  await risky.locator('[data-tick]').click();
  await page.getByText('Look at it first').first().waitFor();
  expect(await risky.getAttribute('aria-checked')).toBe('false');
  expect(await page.getByRole('checkbox', { name: 'Take package.json' }).getAttribute('aria-disabled')).toBe('true');
  // Taking a whole folder or kind leaves it out as well.
  await file(page, 'Runs on your machine').locator('[data-tick]').click();
  expect(await risky.getAttribute('aria-checked')).toBe('false');
  await page.getByRole('tree').focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Space');
  await expect.poll(() => page.getByRole('treeitem', { checked: true, name: /can run code/ }).count()).toBe(0);

  await risky.click();
  await diff(page).getByText('"postinstall"').waitFor();
  await risky.locator('[data-tick]').click();
  expect(await risky.getAttribute('aria-checked')).toBe('true');
  // It was looked at: a reload remembers that, for exactly this content.
  await page.reload();
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  await risky.locator('[data-tick]').click();
  expect(await risky.getAttribute('aria-checked')).toBe('true');
  await bar(page).getByRole('button', { name: 'Merge 6 files' }).click();
  await bar(page).getByText('6 files merged into main').waitFor();
  expect(machine.has('package.json')).toBe(true);
  await bar(page).getByRole('button', { name: 'Undo' }).click();
  await bar(page).getByRole('button', { name: 'Merge 6 files' }).waitFor();
});

test('what is shown stays as it is while the agent goes on, and says that there is newer', async () => {
  await using at = await openReview(place, 'newer');
  const { page } = at;
  await file(page, 'values.ts').click();
  await page.getByRole('checkbox', { name: 'Viewed src/values.ts' }).click();
  await page.getByRole('checkbox', { name: 'Viewed src/new.ts' }).click();
  await page.getByText('2 of 8 files viewed').waitFor();
  await machine.server.call('POST', '/api/tasks/newer/send', { text: 'write: src/new.ts export const never = 0;' });
  await page.getByText('1 file changed since you opened this.').waitFor();
  await page.getByRole('button', { name: 'Open src/new.ts' }).click();
  await diff(page).getByText('export const when').waitFor();
  await page.getByRole('button', { name: 'Update' }).click();
  // The mark stays where nothing changed, and is gone where something did.
  await page.getByText('1 of 8 files viewed').waitFor();
  await diff(page).getByText('export const never').waitFor();
  expect(await diff(page).getByText('export const when').count()).toBe(0);
});

test('all of it can be done with keys alone', async () => {
  await using at = await openReview(place, 'keys');
  const { page } = at;
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  const keys = async (...pressed: string[]): Promise<void> => {
    for (const key of pressed) await page.keyboard.press(key);
  };
  // The first that can run code opens by a key, and can be taken then.
  await keys('!');
  await page.getByText('A symbolic link; the line shown is where it points to.').waitFor();
  await keys('!');
  await diff(page).getByText('"postinstall"').waitFor();
  await keys('Space');
  await expect.poll(() => file(page, 'package.json').getAttribute('aria-checked')).toBe('true');
  // On to a part of a file: not this one; and a comment there.
  await keys('Control+f');
  await page.keyboard.type('NUMBER 50');
  await page.getByText('1 of 2', { exact: true }).waitFor();
  await keys('Enter', 'Enter', 'Escape', 'h');
  await expect.poll(() => file(page, 'values.ts').getAttribute('aria-checked')).toBe('mixed');
  await keys('c');
  await page.getByRole('textbox', { name: /^Comment on line 50/ }).waitFor();
  await expect.poll(() => page.evaluate('document.activeElement?.tagName')).toBe('TEXTAREA');
  await page.keyboard.type('Why?');
  await keys('Control+Enter');
  await page.getByText('Draft, line 50').waitFor();
  await keys('p');
  await keys('v');
  await page.getByText('1 of 8 files viewed').waitFor();
  await keys('u');
  await expect.poll(() => page.getByRole('button', { name: 'Split' }).getAttribute('aria-pressed')).toBe('true');
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  await keys('m', 'Enter');
  await bar(page).getByText('6 files merged into main').waitFor();
  expect(machine.read('src/values.ts')).toContain('second');
  expect(machine.read('src/values.ts')).not.toContain('NUMBER');
  await bar(page).getByRole('button', { name: 'Undo' }).press('Enter');
  await bar(page).getByRole('button', { name: 'Merge 6 files' }).waitFor();
  expect(machine.has('package.json')).toBe(false);
});

test('what is chosen can go to a new branch, or into the working tree without a commit', async () => {
  await using at = await openReview(place, 'look');
  const { page } = at;
  await page.goto(`${page.url()}?file=src/values.ts`);
  await diff(page).getByText('export const second').waitFor();
  await expect.poll(() => file(page, 'values.ts').getAttribute('aria-selected')).toBe('true');
  const more = async (item: string): Promise<void> => {
    await bar(page).getByRole('button', { name: 'More ways to take it' }).click();
    await page.getByRole('menuitem', { name: item }).click();
  };
  await more('Put into working tree, uncommitted');
  await page.getByText('5 files put into your working tree').waitFor();
  expect(machine.read('src/values.ts')).toContain('second');
  expect(machine.git('log', '--format=%s').trim()).toBe('first');
  machine.git('reset', '-q', '--hard');
  machine.git('clean', '-qfd');

  await more('Merge into a new branch…');
  await page.getByRole('textbox', { name: 'Name of the branch' }).fill('side');
  await page.getByRole('button', { name: 'Use this branch' }).click();
  await bar(page).getByText('side (new)').waitFor();
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  await bar(page).getByRole('button', { name: 'Merge 5 files' }).click();
  await bar(page).getByText('5 files merged into side').waitFor();
  expect(machine.git('show', 'side:src/values.ts')).toContain('second');
  expect(machine.git('status', '--porcelain')).toBe('');
});

describe.each(['light', 'dark'] as const)('in the %s', (theme) => {
  test('the review has nothing that keeps anybody out, and forced into a narrow window it stays whole', async () => {
    await using at = await openReview(place, 'look', theme);
    const { page } = at;
    await bar(page)
      .getByText(/Merges cleanly onto/)
      .waitFor();
    await page.keyboard.press('!');
    await page.getByText('A symbolic link; the line shown').waitFor();
    await file(page, 'values.ts').click();
    await diff(page).getByText('export const second').waitFor();
    await page.keyboard.press('n');
    await page.keyboard.press('c');
    await page.getByRole('textbox', { name: /^Comment on/ }).waitFor();
    await picture(page, `review-${theme}`);
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await page.keyboard.press('u');
    await expect.poll(() => page.getByRole('button', { name: 'Split' }).getAttribute('aria-pressed')).toBe('true');
    await picture(page, `review-split-${theme}`);
    await expectAccessible(page);
    await page.setViewportSize({ width: 320, height: 700 });
    await picture(page, `review-narrow-${theme}`);
    await expectAccessible(page);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320);
    expect(at.complaints).toEqual([]);
  });
});

test('a conflict is shown before anything is pressed, and the file can be left out', async () => {
  machine.write('src/values.ts', FILES['src/values.ts'].replace('value2 ', 'mine '));
  machine.git('commit', '-qam', 'mine');
  await using at = await openReview(place, 'conflict');
  const { page } = at;
  await bar(page).getByText('1 file would conflict').waitFor();
  await picture(page, 'review-conflict');
  const merge = bar(page).getByRole('button', { name: /^Merge \d/ });
  expect(await merge.isDisabled()).toBe(true);
  expect(await file(page, 'values.ts').innerText()).toContain('conflict');
  // What each side did to the line, one above the other.
  await bar(page).getByRole('button', { name: 'Both sides of src/values.ts' }).click();
  const both = page.getByRole('region', { name: 'Both sides' });
  await both.getByText('On main').waitFor();
  await both.getByText('export const mine = 2;').waitFor();
  await both.getByText('In this task').waitFor();
  await both.getByText('export const second = 2; // changed').waitFor();
  await picture(page, 'review-both-sides');
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await both.waitFor({ state: 'detached' });
  await bar(page).getByRole('button', { name: 'Leave it out' }).click();
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  await merge.click();
  await bar(page).getByText('4 files merged into main').waitFor();
  expect(machine.read('src/values.ts')).toContain('mine = 2');
  await bar(page).getByRole('button', { name: 'Undo' }).click();
  // The other way: an agent gets both sides in one, in a task of its own.
  await file(page, 'values.ts').locator('[data-tick]').click();
  await bar(page).getByRole('button', { name: 'Let the agent resolve it' }).click();
  await page.getByRole('heading', { name: 'Resolve conflict against main' }).waitFor();
  expect(machine.tasks().filter((name) => name === 'resolve-conflict-against-main')).toHaveLength(1);
});
