// test/web/compare.full.test.ts: compares two attempts in a browser and merges files from both.
import { expect, test } from 'vitest';
import { expectAccessible, picture } from './browser.ts';
import { createReviews } from './review-place.ts';

const FILES = {
  'README.md': '# project\n',
  'ags.yaml': "checks: ['grep B notes.md && grep 2 src/search.ts']\nmerge: {check: true}\n",
  'src/search.ts': 'export const rank = 1;\nexport const index = 1;\n',
};

test('the user compares two attempts file by file, merges files from both, and undoes the merge', async () => {
  await using place = await createReviews(FILES, {
    'index-1':
      "run: sed -i 's/rank = 1/rank = 2/' src/search.ts // write: src/a.ts export const a = 1; // write: notes.md from A",
    'index-2':
      'run: sed -i "s/rank = 1/rank = 3/" src/search.ts // write: notes.md from B // write: package.json {"scripts":{"postinstall":"id"}}',
  });
  const { machine } = place;
  // So low that the diff must shrink to leave room for the merge bar.
  await using at = await place.open(`${place.tasks}/compare/index-1/index-2`, {
    viewport: { width: 1280, height: 800 },
  });
  const { page } = at;
  const files = page.getByRole('list', { name: 'Files' });
  const bar = page.getByRole('region', { name: 'Merge' });
  await bar.getByText('3 files from A, 0 from B').waitFor();
  await bar.getByText('Merges cleanly.').waitFor();
  await expect.poll(() => page.getByRole('table').innerText()).toContain('1: package.json');

  // A file of B that can run code cannot be picked before its diff was opened.
  const risky = files.getByRole('radio', { name: /^from B/, disabled: true });
  expect(await risky.count()).toBe(1);
  await files.getByRole('button', { name: /package\.json/ }).click();
  await page.getByRole('button', { name: 'Changes in B' }).click();
  await page.getByText('"postinstall"').waitFor();
  await expect.poll(() => risky.count()).toBe(0);

  await files.getByRole('button', { name: 'src/search.ts' }).click();
  await page.getByRole('button', { name: 'A vs B' }).click();
  const diff = page.getByRole('region', { name: 'Diff of src/search.ts' });
  await diff.getByText('export const rank = 2;').waitFor();
  await diff.getByText('export const rank = 3;').waitFor();
  await picture(page, 'compare');
  await expectAccessible(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await picture(page, 'compare-dark');
  await expectAccessible(page);

  await files
    .getByRole('radiogroup', { name: 'Version of notes.md' })
    .getByRole('radio', { name: /^from B/ })
    .click();
  await bar.getByText('2 files from A, 1 from B').waitFor();
  await bar.getByText('Merges cleanly.').waitFor();
  const merge = bar.getByRole('button', { name: 'Merge 3 files' });
  expect(await merge.isDisabled()).toBe(true);
  await bar.getByText('Checks must pass before you can merge.').waitFor();
  await bar.getByRole('button', { name: 'Run checks' }).click();
  await bar.getByText('Checks passed').waitFor({ timeout: 60_000 });
  await picture(page, 'compare-checked');
  await expectAccessible(page);
  await merge.click();
  await bar.getByText('Merged').waitFor();
  expect(machine.git('rev-list', '--count', 'HEAD').trim()).toBe('2');
  expect([machine.read('notes.md'), machine.read('src/search.ts').split('\n')[0], machine.has('package.json')]).toEqual(
    ['from B\n', 'export const rank = 2;', false],
  );
  await bar.getByRole('button', { name: 'Undo' }).click();
  await bar.getByRole('button', { name: 'Merge 3 files' }).waitFor();
  expect([machine.has('notes.md'), machine.has('src/a.ts'), machine.git('status', '--porcelain')]).toEqual([
    false,
    false,
    '',
  ]);
  expect(at.complaints).toEqual([]);
});
