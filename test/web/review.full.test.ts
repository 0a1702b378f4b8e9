// test/web/review.full.test.ts: reviews, comments, selects, merges and undoes in a browser, with the mouse and with the keyboard.
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ServerMachine } from '../server/place.ts';
import { agreeTo, expectAccessible, picture, type Place } from './browser.ts';
import { bar, createReviews, diff, file, openReview } from './review-place.ts';

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

// The tests share one machine: each has its own task and restores the branch.
let place: Place;
let machine: ServerMachine;
beforeAll(async () => {
  place = await createReviews(FILES, { look: GOAL, journey: GOAL, newer: GOAL, keys: GOAL, conflict: GOAL });
  ({ machine } = place);
});
afterAll(() => place[Symbol.asyncDispose]());

const hunk = (page: Page, n: number): Locator =>
  page.getByRole('checkbox', { name: new RegExp(`^Include hunk ${n} of 2`) });

test('the user reads changes, comments, selects files and hunks, merges and undoes the merge', async () => {
  await using at = await openReview(place, 'journey');
  const { page } = at;
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  await picture(page, 'review');
  // The page lists files that can run code first, with reasons, and includes none of them.
  const warning = page.getByRole('region', { name: 'Files that can run code' });
  await expect.poll(() => warning.innerText()).toContain('Adds script postinstall: node x.js');
  await expect.poll(() => bar(page).innerText()).toContain('5 of 8 files');

  // Comment on a line; the dialog shows the exact message.
  await file(page, 'values.ts').click();
  const button = page.getByTitle('Comment on this line');
  await expect
    .poll(async () => {
      await diff(page).getByText('export const second').hover();
      // The button exists only while the pointer hovers, and a redraw removes it.
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
  const message = await page.getByLabel('Message', { exact: true }).innerText();
  expect(message).toBe(
    'I looked at your changes and have a comment:\n\n1. src/values.ts, line 2\n   > export const second = 2; // changed\n   Keep the <b>old</b> name.\n',
  );
  await picture(page, 'review-tray');
  await page.getByRole('button', { name: 'Cancel' }).click();

  // Exclude one file, and one hunk of another.
  await file(page, 'new.ts').locator('[data-tick]').click();
  await hunk(page, 2).click();
  await expect.poll(() => file(page, 'values.ts').getAttribute('aria-checked')).toBe('mixed');
  await expect.poll(() => bar(page).innerText()).toContain('4 of 8 files');
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  expect(machine.git('log', '--format=%s').trim()).toBe('first');

  await bar(page).getByRole('textbox', { name: 'Commit message' }).fill('Only what is wanted');
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

  // After a reload too, the page says what is merged, does not offer it again, and takes it back.
  await page.reload();
  await bar(page)
    .getByText(/^4 of 8 files merged into main as [0-9a-f]{7}$/)
    .waitFor();
  await expect.poll(() => file(page, 'old.txt').getAttribute('aria-checked')).toBe('false');
  await bar(page).getByRole('button', { name: 'Undo merge' }).click();
  await bar(page).getByRole('button', { name: 'Merge 4 files' }).waitFor();
  expect(await bar(page).getByText('merged into').count()).toBe(0);
  expect(machine.read('src/values.ts')).toBe(FILES['src/values.ts']);
  expect(machine.git('status', '--porcelain')).toBe('');

  // Sending turns the comments into one message.
  await page.keyboard.press('Shift+C');
  await page.getByRole('button', { name: 'Send to agent' }).click();
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

test('a file that can run code cannot be included before its diff was opened', async () => {
  await using at = await openReview(place, 'look');
  const { page } = at;
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  const risky = file(page, 'package.json');
  await risky.locator('[data-tick]').click();
  await page.getByText('Open its diff first').first().waitFor();
  expect(await risky.getAttribute('aria-checked')).toBe('false');
  expect(await page.getByRole('checkbox', { name: 'Include package.json' }).getAttribute('aria-disabled')).toBe('true');
  // Including its folder or group does not include it either.
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
  // A reload remembers the choice, and that the diff of this content was opened.
  await page.reload();
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  expect(await risky.getAttribute('aria-checked')).toBe('true');
  await bar(page).getByRole('button', { name: 'Merge 6 files' }).click();
  await bar(page).getByText('6 files merged into main').waitFor();
  expect(machine.has('package.json')).toBe(true);
  await bar(page).getByRole('button', { name: 'Undo' }).click();
  await bar(page).getByRole('button', { name: 'Merge 6 files' }).waitFor();
});

test(
  'the review keeps its version while the agent continues, and offers the newer one',
  { timeout: 300_000 },
  async () => {
    await using at = await openReview(place, 'newer');
    const { page } = at;
    await file(page, 'values.ts').click();
    await page.getByRole('checkbox', { name: 'Viewed src/values.ts' }).click();
    await page.getByText('1 of 8 files viewed').waitFor();
    await page.getByRole('checkbox', { name: 'Viewed src/new.ts' }).click();
    await page.getByText('2 of 8 files viewed').waitFor();
    await machine.server.call('POST', '/api/tasks/newer/send', { text: 'write: src/new.ts export const never = 0;' });
    // A turn of an agent takes its time on a busy machine.
    await page.getByText('1 file changed since you opened this.').waitFor({ timeout: 110_000 });
    await page.getByRole('button', { name: 'Expand src/new.ts' }).click();
    await diff(page).getByText('export const when').waitFor();
    await page.getByRole('button', { name: 'Update' }).click();
    // Unchanged files stay marked as viewed; changed files do not.
    await page.getByText('1 of 8 files viewed').waitFor();
    await diff(page).getByText('export const never').waitFor();
    await expect.poll(() => diff(page).getByText('export const when').count()).toBe(0);
  },
);

test('the whole review works with the keyboard alone', async () => {
  await using at = await openReview(place, 'keys');
  const { page } = at;
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  const keys = async (...pressed: string[]): Promise<void> => {
    for (const key of pressed) await page.keyboard.press(key);
  };
  // A shortcut opens the next file that can run code, which can then be included.
  await keys('!');
  await page.getByText('A symbolic link. The line below is its target.').waitFor();
  await keys('!');
  await diff(page).getByText('"postinstall"').waitFor();
  await keys('Space');
  await expect.poll(() => file(page, 'package.json').getAttribute('aria-checked')).toBe('true');
  // Find a hunk, exclude it and comment on it.
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
  // A sentence that is typed at the page, its Enter included, merges nothing; the question takes Enter alone.
  const before = machine.git('rev-parse', 'main');
  const question = page.getByRole('dialog', { name: 'Merge 6 files into main?' });
  await page.keyboard.type('make it so');
  await keys('Enter');
  await question.getByText('You are typing.').waitFor();
  await expectAccessible(page);
  await keys('Escape');
  await question.waitFor({ state: 'detached' });
  expect(machine.git('rev-parse', 'main')).toBe(before);
  await keys('m');
  await question.getByText('No checks have run on this result.').waitFor();
  // On a busy machine, the first keys come before it has the focus.
  await page.evaluate('document.activeElement.blur()');
  await keys('Space', 'Enter');
  await question.getByText('You are typing.').waitFor();
  await keys('Escape');
  await question.waitFor({ state: 'detached' });
  expect(machine.git('rev-parse', 'main')).toBe(before);
  // "Merge them" and Enter: the last letter opens the question, which does not take the sentence's Enter, nor one as fast as that.
  await page.keyboard.type('them');
  await question.getByText('You are typing.').waitFor();
  await keys('Enter', 'Escape');
  await question.waitFor({ state: 'detached' });
  await keys('h');
  await page.waitForTimeout(300);
  await keys('m', 'Enter');
  await question.getByText('Enter', { exact: true }).filter({ visible: true }).waitFor();
  await keys('Escape');
  await question.waitFor({ state: 'detached' });
  expect(machine.git('rev-parse', 'main')).toBe(before);
  await agreeTo(page, 'm', 'Merge 6 files into main?');
  await bar(page).getByText('6 files merged into main').waitFor();
  expect(machine.read('src/values.ts')).toContain('second');
  expect(machine.read('src/values.ts')).not.toContain('NUMBER');
  await bar(page).getByRole('button', { name: 'Undo' }).press('Enter');
  await bar(page).getByRole('button', { name: 'Merge 6 files' }).waitFor();
  expect(machine.has('package.json')).toBe(false);
});

test('the selection can go to a new branch, or to the working tree without a commit', async () => {
  await using at = await openReview(place, 'look');
  const { page } = at;
  await page.goto(`${page.url()}?file=src/values.ts`);
  await diff(page).getByText('export const second').waitFor();
  await expect.poll(() => file(page, 'values.ts').getAttribute('aria-selected')).toBe('true');
  const more = async (item: string): Promise<void> => {
    await bar(page).getByRole('button', { name: 'More merge options' }).click();
    await page.getByRole('menuitem', { name: item }).click();
  };
  await more('Apply to working tree without committing');
  await page.getByText('5 files written to your working tree').waitFor();
  expect(machine.read('src/values.ts')).toContain('second');
  expect(machine.git('log', '--format=%s').trim()).toBe('first');
  machine.git('reset', '-q', '--hard');
  machine.git('clean', '-qfd');

  await more('Merge into a new branch…');
  await page.getByRole('textbox', { name: 'Branch name' }).fill('side');
  await page.getByRole('button', { name: 'Use branch' }).click();
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
  test('the review passes the accessibility checks, also in a narrow window', async () => {
    await using at = await openReview(place, 'look', theme);
    const { page } = at;
    await bar(page)
      .getByText(/Merges cleanly onto/)
      .waitFor();
    await page.keyboard.press('!');
    await page.getByText('A symbolic link. The line below').waitFor();
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

test('a conflict is shown before the merge, and the user excludes the file or starts an agent', async () => {
  machine.write('src/values.ts', FILES['src/values.ts'].replace('value2 ', 'mine '));
  machine.git('commit', '-qam', 'mine');
  await using at = await openReview(place, 'conflict');
  const { page } = at;
  await bar(page).getByText('1 file would conflict').waitFor();
  await picture(page, 'review-conflict');
  const merge = bar(page).getByRole('button', { name: /^Merge \d/ });
  expect(await merge.isDisabled()).toBe(true);
  expect(await file(page, 'values.ts').innerText()).toContain('conflict');
  // Shows the changes of both sides.
  await bar(page).getByRole('button', { name: 'Compare sides of src/values.ts' }).click();
  const both = page.getByRole('region', { name: 'Both sides' });
  await both.getByText('On main').waitFor();
  await both.getByText('export const mine = 2;').waitFor();
  await both.getByText('In this task').waitFor();
  await both.getByText('export const second = 2; // changed').waitFor();
  await picture(page, 'review-both-sides');
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await both.waitFor({ state: 'detached' });
  await bar(page).getByRole('button', { name: 'Exclude it' }).click();
  await bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();
  await merge.click();
  await bar(page).getByText('4 files merged into main').waitFor();
  expect(machine.read('src/values.ts')).toContain('mine = 2');
  await bar(page).getByRole('button', { name: 'Undo' }).click();
  // Alternatively, an agent resolves the conflict in a new task.
  await file(page, 'values.ts').locator('[data-tick]').click();
  await bar(page).getByRole('button', { name: 'Let an agent resolve it' }).click();
  await page.getByRole('heading', { name: 'Resolve conflict against main' }).waitFor();
  expect(machine.tasks().filter((name) => name === 'resolve-conflict-against-main')).toHaveLength(1);
});
