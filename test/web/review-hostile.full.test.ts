// test/web/review-hostile.full.test.ts: hostile file names and contents are shown in the review and do nothing.
import { expect, test } from 'vitest';
import { picture } from './browser.ts';
import { createReviews, openReview } from './review-place.ts';

const PWN = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>';
const MAKE = `#!/bin/sh
cd work
printf '%s\\n' '${PWN}' '</code></pre><style>*{display:none}</style>' 'javascript:alert(1)' > markup.html
printf 'a\\033[31mred\\033]0;title\\007 b\\n' > escapes.txt
printf 'access = "user\\342\\200\\256 \\342\\201\\246// admin\\342\\201\\251 \\342\\201\\246"\\n' > bidi.ts
head -c 6000000 /dev/zero | tr '\\0' 'x' > long.js
printf 'diff --git a/x b/x\\n--- a/x\\n+++ b/x\\n@@ -1 +1 @@\\n-a\\n+b\\n' > looks-like-a.patch
echo hi > '<img src=x onerror=window.pwned=1>.ts'
echo hi > "$(printf 'gpj.\\342\\200\\256cod')"
echo hi > "$(printf 'esc\\033[31m.txt')"
printf 'not utf-8 \\377\\376\\n' > bytes.txt
printf 'windows\\r\\n' > crlf.txt
`;

test('A122, A125: markup, escapes, reordering characters and endless lines in names and contents are inert', async () => {
  await using place = await createReviews(
    { 'make.sh': MAKE, 'work/crlf.txt': 'windows\n' },
    { hostile: 'run: sh make.sh' },
  );
  await using at = await openReview(place, 'hostile');
  const { page } = at;
  page.on('dialog', () => at.complaints.push('a dialog'));
  const diff = page.getByRole('region', { name: 'Changes' });
  const tree = page.getByRole('tree');
  await page.getByText(/Merges cleanly onto/).waitFor();
  for (const name of [
    '<img src=x onerror=window.pwned=1>.ts',
    'gpj.<U+202E>cod',
    'esc\\x1b[31m.txt',
    'markup.html',
    'escapes.txt',
    'bidi.ts',
    'looks-like-a.patch',
    'bytes.txt',
    'crlf.txt',
    'long.js',
  ]) {
    await tree.getByText(name, { exact: true }).click();
    await diff.getByText(name, { exact: true }).first().waitFor();
  }
  const shown = async (text: string): Promise<void> => {
    await page.keyboard.press('Control+f');
    const field = page.getByRole('textbox', { name: 'Find in the diff' });
    await field.fill(text);
    await page.getByText(/^1 of \d+$/).waitFor();
    await field.press('Enter');
    await diff.getByText(text).first().waitFor();
    await field.press('Escape');
  };
  await shown('<script>window.pwned=1</script>');
  await picture(page, 'review-hostile');
  await shown('</code></pre><style>*{display:none}</style>');
  await shown('a\\x1b[31mred\\x1b]0;title\\x07 b');
  await shown('user<U+202E> <U+2066>// admin<U+2069> <U+2066>');
  await shown('more characters cut]');
  await shown('@@ -1 +1 @@');
  await diff.getByText('Line endings are now CRLF (Windows).').waitFor();
  expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBe(undefined);
  expect(await page.locator('img[src=x]').count()).toBe(0);
  expect(await diff.locator('script').count()).toBe(0);
  // The page contains only a small part of the long line.
  expect((await diff.innerText()).length).toBeLessThan(100_000);
  expect(at.complaints).toEqual([]);
});
