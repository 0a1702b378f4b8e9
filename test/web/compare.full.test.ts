// test/web/compare.full.test.ts: two attempts side by side in a real browser, and files from both on the branch.
import { expect, test } from 'vitest';
import { expectAccessible } from './browser.ts';
import { createReviews, picture } from './review-place.ts';

const FILES = {
  'README.md': '# project\n',
  'ags.yaml': "checks: ['grep B notes.md && grep 2 src/search.ts']\nmerge: {check: true}\n",
  'src/search.ts': 'export const rank = 1;\nexport const index = 1;\n',
};

test('two attempts are compared file by file, and what is taken comes from both, and can be undone', async () => {
  await using place = await createReviews(FILES, {
    'index-1':
      "run: sed -i 's/rank = 1/rank = 2/' src/search.ts // write: src/a.ts export const a = 1; // write: notes.md from A",
    'index-2':
      'run: sed -i "s/rank = 1/rank = 3/" src/search.ts // write: notes.md from B // write: package.json {"scripts":{"postinstall":"id"}}',
  });
  const { machine } = place;
  // So low that the difference must give way to the bar below it.
  await using at = await place.open(`${place.tasks}/compare/index-1/index-2`, {
    viewport: { width: 1280, height: 800 },
  });
  const { page } = at;
  const files = page.getByRole('list', { name: 'Files' });
  const take = page.getByRole('region', { name: 'Take' });
  await take.getByText('3 files from A, 0 from B').waitFor();
  await take.getByText('Merges cleanly.').waitFor();
  await expect.poll(() => page.getByRole('table').innerText()).toContain('1: package.json');

  // What B would run cannot be taken before it was looked at.
  const risky = files.getByRole('radio', { name: /^from B/, disabled: true });
  expect(await risky.count()).toBe(1);
  await files.getByRole('button', { name: /package\.json/ }).click();
  await page.getByRole('button', { name: 'What B changed' }).click();
  await page.getByText('"postinstall"').waitFor();
  await expect.poll(() => risky.count()).toBe(0);

  await files.getByRole('button', { name: 'src/search.ts' }).click();
  await page.getByRole('button', { name: 'A against B' }).click();
  const diff = page.getByRole('region', { name: 'Difference of src/search.ts' });
  await diff.getByText('export const rank = 2;').waitFor();
  await diff.getByText('export const rank = 3;').waitFor();
  await picture(page, 'compare');
  await expectAccessible(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await picture(page, 'compare-dark');
  await expectAccessible(page);

  await files
    .getByRole('radiogroup', { name: 'Take notes.md' })
    .getByRole('radio', { name: /^from B/ })
    .click();
  await take.getByText('2 files from A, 1 from B').waitFor();
  await take.getByText('Merges cleanly.').waitFor();
  const merge = take.getByRole('button', { name: 'Merge 3 files' });
  expect(await merge.isDisabled()).toBe(true);
  await take.getByText('They have to pass before it can be merged.').waitFor();
  await take.getByRole('button', { name: 'Run checks' }).click();
  await take.getByText('Checks passed').waitFor({ timeout: 60_000 });
  await picture(page, 'compare-checked');
  await expectAccessible(page);
  await merge.click();
  await take.getByText('Merged').waitFor();
  expect(machine.git('rev-list', '--count', 'HEAD').trim()).toBe('2');
  expect([machine.read('notes.md'), machine.read('src/search.ts').split('\n')[0], machine.has('package.json')]).toEqual(
    ['from B\n', 'export const rank = 2;', false],
  );
  await take.getByRole('button', { name: 'Undo' }).click();
  await take.getByRole('button', { name: 'Merge 3 files' }).waitFor();
  expect([machine.has('notes.md'), machine.has('src/a.ts'), machine.git('status', '--porcelain')]).toEqual([
    false,
    false,
    '',
  ]);
  expect(at.complaints).toEqual([]);
});
