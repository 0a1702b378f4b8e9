// test/web/walk.test.ts: starts, watches, reviews, merges and undoes a task with the keyboard alone, in a browser.
import { expect, test } from 'vitest';
import { agreeTo, createPlace } from './browser.ts';

test('the user starts, watches, reviews, merges and undoes a task with the keyboard alone', async () => {
  await using place = await createPlace({ 'README.md': '# project\n', 'src/a.ts': 'export const a = 1;\n' });
  const { machine } = place;
  await using window = await place.open('/');
  const { page, complaints } = window;
  // Any use of the mouse fails the test.
  await page.evaluate(`addEventListener('pointerdown', () => console.error('a mouse was used'))`);
  const keys = async (...pressed: string[]): Promise<void> => {
    for (const key of pressed) await page.keyboard.press(key);
  };
  /** Presses Tab until an element with this name has focus. */
  const tabTo = async (name: RegExp): Promise<void> => {
    for (let stops = 0; stops < 80; stops += 1) {
      await keys('Tab');
      const at = await page.evaluate<string>(
        `(document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '').trim()`,
      );
      if (name.test(at)) return;
    }
    throw new Error(`Tab never reached ${String(name)}`);
  };
  await page.getByText('No tasks yet').waitFor();
  await keys('c');
  await page.keyboard.type(
    'Change the value // run: sed -i s/1/2/ src/a.ts // write: notes.md hello // ask: Is that right? // wait: 600',
  );
  await keys('Control+Enter');
  await page.getByRole('row').filter({ hasText: 'Change the value' }).getByText('Needs you').first().waitFor();
  await keys('Escape', 'Alt+2');
  expect(page.url()).not.toContain('/t/');
  await keys('Alt+1');
  await page.getByRole('heading', { name: /Change the value/ }).waitFor();
  await page.getByText('The agent asks').waitFor();
  await keys('i');
  await page.keyboard.type('write: more.md yes');
  await keys('Control+Enter');
  await page.getByText('Queued until the agent finishes its turn.').first().waitFor();
  await keys('Escape');
  await agreeTo(page, 's', /^Stop /);
  await page.locator('header [data-state=stopped]').waitFor();
  await page.getByText(/^Review changes/).waitFor();
  await keys('o');
  const bar = page.getByRole('region', { name: 'Merge' });
  await bar.getByText(/Merges cleanly onto/).waitFor();
  await keys('j', 'j', 'v');
  await agreeTo(page, 'm', /^Merge /);
  await bar.getByText('2 files merged into main').waitFor();
  expect([machine.read('src/a.ts'), machine.read('notes.md')]).toEqual(['export const a = 2;\n', 'hello\n']);
  await tabTo(/^Undo merge$/);
  await keys('Enter');
  await bar.getByRole('button', { name: 'Merge 2 files' }).waitFor();
  expect([machine.read('src/a.ts'), machine.has('notes.md')]).toEqual(['export const a = 1;\n', false]);
  expect(machine.git('status', '--porcelain')).toBe('');
  await keys('Escape');
  await page.getByText('Merge undone: main is at').waitFor();
  await page.getByText('2 files merged into main as').waitFor();
  await keys('Escape');
  await page
    .getByRole('row')
    .filter({ hasText: 'Change the value' })
    .getByText('Ready', { exact: true })
    .first()
    .waitFor();
  expect(complaints).toEqual([]);
});
