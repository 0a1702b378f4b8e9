// test/web/review-far.full.test.ts: in a review of long files, the file that was asked for is at the top.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import type { Place } from './browser.ts';
import { createReviews, diff, file, openReview } from './review-place.ts';

const LONG = Array.from({ length: 2400 }, (_, i) => `${i}: ${'a line that wraps in a narrow window '.repeat(i % 7)}`);
const NAMES = Array.from({ length: 10 }, (_, i) => `z${i}.txt`);
let place: Place;

beforeAll(async () => {
  const small = Object.fromEntries(NAMES.map((name) => [name, LONG.slice(0, 60).join('\n')]));
  const edits =
    "perl -pi -e 's/^(\\d+0):/$1 changed:/' a-long.txt z?.txt && perl -pi -e 's/^/ /' b-spaces.txt && echo last > zz-last.txt";
  place = await createReviews(
    { 'a-long.txt': `${LONG.join('\n')}\n`, 'b-spaces.txt': LONG.slice(0, 400).join('\n'), ...small },
    { far: `run: ${edits}` },
  );
});
afterAll(async () => place[Symbol.asyncDispose]());

/** How far below the top of the diff the header of the file is; null: it is not drawn. */
async function distance(page: Page, name: string): Promise<number | null> {
  const region = await diff(page).boundingBox();
  const box = await page.getByRole('checkbox', { name: `Viewed ${name}` }).boundingBox();
  return region === null || box === null ? null : Math.round(box.y - region.y);
}

async function expectAtTop(page: Page, name: string): Promise<void> {
  const isAtTop = async (): Promise<boolean> => {
    const px = await distance(page, name).catch(() => null);
    return px !== null && px >= 0 && px < 44;
  };
  await expect.poll(isAtTop, { message: `${name} is at the top` }).toBe(true);
  // It stays there while other files are loaded and measured.
  await page.waitForTimeout(700);
  expect(await isAtTop(), `${name} stays at the top`).toBe(true);
}

test(
  'links, clicks, keys and toggles lead to the named file, behind a long one too',
  { timeout: 300_000 },
  async () => {
    await using window = await openReview(place, 'far');
    const { page } = window;
    // The last one too, which is shorter than the window.
    for (const name of ['z2.txt', 'zz-last.txt', 'z5.txt']) {
      await page.goto(new URL(`?file=${name}`, page.url()).href);
      await expectAtTop(page, name);
      await page.getByRole('treeitem', { name, selected: true }).waitFor();
    }
    for (const name of ['z1.txt', 'z7.txt', 'b-spaces.txt', 'z4.txt']) {
      await file(page, name).click();
      await expectAtTop(page, name);
    }
    await page.keyboard.press('[');
    await expectAtTop(page, 'z3.txt');
    await page.keyboard.press('w');
    await expectAtTop(page, 'z3.txt');
    await page.keyboard.press('u');
    await expectAtTop(page, 'z3.txt');
  },
);
