// test/web/review-ways.full.test.ts: whitespace, links, changes since viewed and kept commits in a review, in a browser.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ServerMachine } from '../server/place.ts';
import { picture, type Place } from './browser.ts';
import { bar, clean, createReviews, diff, file, openReview } from './review-place.ts';

const LINES = Array.from({ length: 120 }, (_, i) => `const line${i + 1} = ${i + 1};`);
const FILES = {
  'README.md': '# project\n',
  'src/a.ts': `${LINES.join('\n')}\n`,
  'src/b.ts': 'if (a) {\nb();\n}\n',
  Makefile: 'all:\n\techo hi\n',
};

let place: Place;
let machine: ServerMachine;
beforeAll(async () => {
  place = await createReviews(FILES, {
    space:
      "run: sed -i -e '5s/^/    /' -e '60s/60;/sixty;/' src/a.ts; sed -i 's/^b/    b/' src/b.ts; sed -i 's/^\\techo hi/\\t echo hi/' Makefile",
    again: 'write: notes.md first words // write: other.md same',
    commits: 'write: one.md 1 // commit: Add one // write: two.md 2 // commit: Add two',
  });
  ({ machine } = place);
});
afterAll(() => place[Symbol.asyncDispose]());

test('a shortcut hides whitespace changes without changing what is merged', async () => {
  await using at = await openReview(place, 'space');
  const { page } = at;
  await clean(page);
  await diff(page)
    .getByRole('checkbox', { name: /^Include hunk 1 of 2 of src\/a.ts/ })
    .waitFor();
  // Exclude the hunk that is not whitespace.
  await diff(page)
    .getByRole('checkbox', { name: /^Include hunk 2 of 2 of src\/a.ts/ })
    .click();
  await expect.poll(() => file(page, 'a.ts').getAttribute('aria-checked')).toBe('mixed');
  await page.keyboard.press('w');
  await page.getByRole('button', { name: 'Whitespace hidden', pressed: true }).waitFor();
  await file(page, 'b.ts').click();
  await diff(page).getByText('Only whitespace changed.').waitFor();
  await file(page, 'a.ts').click();
  await diff(page).getByText('sixty').waitFor();
  const changed = diff(page).locator('[data-line][data-line-type^=change]');
  expect(await changed.filter({ hasText: 'line5 = 5;' }).count()).toBe(0);
  // The selection stays, but hunks cannot be chosen while some are hidden.
  expect(
    await diff(page)
      .getByRole('checkbox', { name: /^Include hunk/ })
      .count(),
  ).toBe(0);
  await page.keyboard.press('h');
  await page.getByText('Hunks can be chosen only in the full diff').first().waitFor();
  expect(await file(page, 'a.ts').getAttribute('aria-checked')).toBe('mixed');
  // A file that can run code is always shown in full, whitespace included.
  await file(page, 'Makefile').click();
  await diff(page).getByText('echo hi').nth(1).waitFor();
  await picture(page, 'review-no-space');
  await clean(page);
  await bar(page).getByRole('button', { name: 'Merge 2 files' }).click();
  await bar(page).getByText('2 files merged into main').waitFor();
  expect(
    machine
      .read('src/a.ts')
      .split('\n')
      .filter((line, i) => line !== LINES[i] && line !== ''),
  ).toEqual(['    const line5 = 5;']);
  expect(machine.read('src/b.ts')).toBe('if (a) {\n    b();\n}\n');
  await bar(page).getByRole('button', { name: 'Undo' }).click();
  await bar(page).getByRole('button', { name: 'Merge 2 files' }).waitFor();
  await page.keyboard.press('w');
  await diff(page)
    .getByRole('checkbox', { name: /^Include hunk 2 of 2 of src\/a.ts/ })
    .waitFor();
  expect(at.complaints).toEqual([]);
});

test('a URL opens a line and a layout, and a shortcut copies the link to the selected line', async () => {
  const path = `${place.task('space')}/changes?file=src/a.ts&line=60&layout=split`;
  await using at = await place.open(path, { permissions: ['clipboard-read', 'clipboard-write'] });
  const { page } = at;
  await page.getByRole('button', { name: 'Split', pressed: true }).waitFor();
  const marked = diff(page).locator('[data-line][data-selected-line]').filter({ hasText: 'sixty' });
  await marked.waitFor();
  await expect.poll(() => marked.evaluate((line) => line.getBoundingClientRect().top)).toBeGreaterThan(100);
  await expect.poll(() => marked.evaluate((line) => line.getBoundingClientRect().bottom)).toBeLessThan(900);
  await picture(page, 'review-line');
  await page.keyboard.press('k');
  await page.keyboard.press('y');
  await page.getByText('Link copied').waitFor();
  const link = new URL(await page.evaluate<string>('navigator.clipboard.readText()'));
  expect(link.pathname).toBe(`${place.task('space')}/changes`);
  expect([link.searchParams.get('file'), link.searchParams.get('line')]).toEqual(['src/a.ts', 'old-60']);
  await page.goto(link.href);
  await diff(page).locator('[data-line][data-selected-line]').filter({ hasText: 'line60 = 60;' }).waitFor();
  // The layout in a URL applies only to that URL; the user's choice is remembered.
  await page.getByRole('button', { name: 'Unified', pressed: true }).waitFor();
  expect(at.complaints).toEqual([]);
});

test('the changes since a file was viewed can be shown alone', async () => {
  await using at = await openReview(place, 'again');
  const { page } = at;
  await clean(page);
  await page.getByRole('checkbox', { name: 'Viewed notes.md' }).click();
  await page.getByRole('checkbox', { name: 'Viewed other.md' }).click();
  expect(await page.getByRole('button', { name: /^Show changes since you viewed/ }).count()).toBe(0);
  await machine.server.call('POST', '/api/tasks/again/send', { text: 'append: notes.md second words' });
  await page.getByRole('button', { name: 'Update' }).click({ timeout: 30_000 });
  await page.getByRole('button', { name: 'Show changes since you viewed notes.md' }).click();
  await diff(page).getByText('Only changes since you last viewed it.').waitFor();
  const kind = (text: string): Promise<string | null> =>
    diff(page).locator('[data-line]').filter({ hasText: text }).first().getAttribute('data-line-type');
  await expect.poll(() => kind('second words')).toBe('change-addition');
  expect(await kind('first words')).toBe('context');
  await picture(page, 'review-since');
  await page.getByRole('button', { name: 'Show full diff' }).click();
  await expect.poll(() => kind('first words')).toBe('change-addition');
  expect(await page.getByRole('button', { name: 'Show changes since you viewed other.md' }).count()).toBe(0);
  expect(at.complaints).toEqual([]);
});

test('a merge can keep the commits of the agent, and undo removes them together', async () => {
  await using at = await openReview(place, 'commits');
  const { page } = at;
  await clean(page);
  const before = machine.git('rev-parse', 'main');
  await bar(page).getByRole('button', { name: 'More merge options' }).click();
  await page.getByRole('menuitem', { name: "Keep the agent's commits" }).click();
  await bar(page).getByText('The merge keeps the agent’s commits.').waitFor();
  expect(await bar(page).getByRole('textbox', { name: 'Commit message' }).isDisabled()).toBe(true);
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
