// test/web/review-ways.test.ts: further ways to look at changes and to take them, in a browser.
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ServerMachine } from '../server/place.ts';
import type { Place } from './browser.ts';
import { createReviews, openReview, picture } from './review-place.ts';

const FILES = { 'README.md': '# project\n', 'src/a.ts': 'export const a = 1;\n' };

let place: Place;
let machine: ServerMachine;
beforeAll(async () => {
  place = await createReviews(FILES, {
    commits: 'write: one.md 1 // commit: Add one // write: two.md 2 // commit: Add two',
  });
  ({ machine } = place);
});
afterAll(() => place[Symbol.asyncDispose]());

const bar = (page: Page): Locator => page.getByRole('region', { name: 'Merge' });
const clean = (page: Page): Promise<void> =>
  bar(page)
    .getByText(/Merges cleanly onto/)
    .waitFor();

test('the commits of an agent are kept where somebody wants them, and undone together', async () => {
  await using at = await openReview(place, 'commits');
  const { page } = at;
  await clean(page);
  const before = machine.git('rev-parse', 'main');
  await bar(page).getByRole('button', { name: 'More ways to take it' }).click();
  await page.getByRole('menuitem', { name: "Keep the agent's commits" }).click();
  await bar(page).getByText("The agent's own commits are kept.").waitFor();
  expect(await bar(page).getByRole('textbox', { name: 'Message of the commit' }).isDisabled()).toBe(true);
  await clean(page);
  await picture(page, 'review-keep-commits');
  await bar(page).getByRole('button', { name: 'Merge 2 files' }).click();
  await bar(page).getByText('2 files merged into main').waitFor();
  const subjects = machine.git('log', '--format=%s', `${before.trim()}..main`);
  expect(subjects).toContain('Add one\n');
  expect(subjects).toContain('Add two\n');
  expect([machine.read('one.md'), machine.read('two.md')]).toEqual(['1\n', '2\n']);
  await bar(page).getByRole('button', { name: 'Undo' }).click();
  await bar(page).getByRole('button', { name: 'Merge 2 files' }).waitFor();
  expect(machine.git('rev-parse', 'main')).toBe(before);
  expect(machine.git('status', '--porcelain')).toBe('');
  expect(at.complaints).toEqual([]);
});
