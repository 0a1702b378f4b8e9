// test/web/look.full.test.ts: accessibility of every page in both themes, small windows, keyboard use and reduced motion; and hostile
// text from agents.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPlace, expectAccessible, scriptBytes, seen, type Place } from './browser.ts';

const RLO = '\u202E';
const HOSTILE = [
  `<img src=x onerror="window.pwned=1"> ${RLO}gnp.exe \u001b]0;owned\u0007 \u001b[31mred`,
  'say: See <script>window.pwned=2</script> ![spy](https://spy.test/a.png) [click](javascript:window.pwned=3) [bank](https://bank.test@evil.test/x) <b onmouseover="window.pwned=4">bold</b>',
  `run: printf '\\033]52;c;b3duZWQ=\\007\\033[2J'; head -c 60000 /dev/zero | tr '\\0' x; exit 1`,
  `write: <img+src=x+onerror=window.pwned=5>.txt hello`,
  'fetch: https://xn--spy-test.example/',
  'fail: <svg/onload=window.pwned=6>',
].join('\n');

let place: Place;
beforeAll(async () => {
  place = await createPlace();
  const { machine } = place;
  await machine.runDemo(
    'plain',
    'Explain the dates\nread: README.md\nsay: Some *words* and `code`.\nrun: exit 1\nwrite: a.txt 1\nfetch: https://blocked.test/\nuse: 120000',
  );
  await machine.runDemo('hostile', HOSTILE);
  await machine.ags(['exec', '--review', 'later', '--name', 'command', '--', 'sh', '-c', 'echo x > x.txt']);
  await machine.ags([
    'start',
    'deciding',
    'ask: Redis or memory? // wait: 600',
    '--agent',
    'demo',
    '--max-parallel',
    '64',
    '--detach',
  ]);
  await machine.until('deciding', ['needs-you']);
}, 180_000);
afterAll(() => place[Symbol.asyncDispose]());

const PAGES: Readonly<Record<string, (place: Place) => { path: string; there: string }>> = {
  tasks: (at) => ({ path: at.tasks, there: 'Redis or memory?' }),
  'tasks without a match': (at) => ({ path: `${at.tasks}?q=is%3Amerged`, there: 'No matching tasks' }),
  'a finished task': (at) => ({ path: at.task('plain'), there: 'on branch' }),
  'a task with a question': (at) => ({ path: at.task('deciding'), there: 'The agent asks' }),
  'a hostile task': (at) => ({ path: at.task('hostile'), there: 'Failed' }),
  'a command without an agent': (at) => ({
    path: at.task(at.machine.tasks().find((id) => id.startsWith('command')) ?? ''),
    there: 'No activity yet',
  }),
  'a task with its logs': (at) => ({ path: `${at.task('plain')}?panel=logs`, there: 'state=ready' }),
  'a missing task': (at) => ({ path: at.task('missing'), there: 'Cannot show this task' }),
  'a review': (at) => ({ path: `${at.task('plain')}/changes`, there: 'Merges cleanly onto' }),
  'a hostile review': (at) => ({ path: `${at.task('hostile')}/changes`, there: 'Merges cleanly onto' }),
  'two tasks side by side': (at) => ({ path: `${at.tasks}/compare/plain/hostile`, there: 'Merges cleanly' }),
  network: (at) => ({ path: `${at.tasks}/network`, there: 'blocked.test' }),
  'network presets': (at) => ({ path: `${at.tasks}/network?show=presets`, there: 'In use' }),
  settings: () => ({ path: '/settings', there: 'in total' }),
  'an address without a page': () => ({ path: '/nothing/here', there: 'No page at this address' }),
};

describe.each(['light', 'dark'] as const)('in %s', (colorScheme) => {
  test('every page passes the accessibility checks, and none scrolls sideways in a small window', async () => {
    await using window = await place.open('/', { colorScheme });
    const { page } = window;
    for (const wanted of Object.values(PAGES)) {
      const { path, there } = wanted(place);
      await page.goto(new URL(path, page.url()).href);
      await seen(page, there);
      await expectAccessible(page);
      if (colorScheme === 'light') await expectToFit(page, path);
    }
  }, 240_000);

  test('dialogs and menus pass the accessibility checks', async () => {
    await using window = await place.open(place.tasks, { colorScheme });
    const { page } = window;
    await seen(page, 'Redis or memory?');
    const close = async (): Promise<void> => {
      await page.keyboard.press('Escape');
      await page.locator('[role=dialog],[role=menu]').waitFor({ state: 'detached' });
    };
    await page.keyboard.press('Control+k');
    await page.getByRole('option').first().waitFor();
    await expectAccessible(page);
    await close();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await expectAccessible(page);
    await close();
    for (const name of [/: agent$/, /: limits$/, /waiting for you$/]) {
      await page.getByRole('button', { name }).click();
      await page.locator('[role=dialog],[role=menu]').waitFor();
      await expectAccessible(page);
      await close();
    }
    await page.getByRole('textbox', { name: 'What should an agent do?' }).fill('one\ntwo');
    await page.getByRole('checkbox').first().click();
    await expectAccessible(page);
  });
});

test('the palette without green and red passes as well, and is remembered', async () => {
  await using window = await place.open('/settings');
  const { page } = window;
  await page.getByRole('button', { name: 'Blue and orange' }).click();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const name of ['tasks', 'a task with a question', 'a hostile task', 'a review', 'network']) {
      const { path, there } = PAGES[name]?.(place) ?? { path: '', there: '' };
      await page.goto(new URL(path, page.url()).href);
      await seen(page, there);
      expect(await page.evaluate('document.documentElement.dataset.palette')).toBe('blue-orange');
      await expectAccessible(page);
    }
  }
  // Success is bluer than red, and failure is redder than blue.
  const [ok, bad] = await page.evaluate<number[][]>(
    `['--ok', '--bad'].map((name) => getComputedStyle(document.documentElement).getPropertyValue(name).match(/\\w\\w/g).map((two) => parseInt(two, 16)))`,
  );
  expect(ok?.[2]).toBeGreaterThan(ok?.[0] ?? 255);
  expect(bad?.[0]).toBeGreaterThan(bad?.[2] ?? 255);
  // Signs mark additions without colour.
  await page.goto(new URL(`${place.task('plain')}/changes`, page.url()).href);
  await page.getByText('+1').first().waitFor();
}, 120_000);

const SIZES = [
  { width: 320, height: 640 },
  // 1280 pixels at 200 %.
  { width: 640, height: 400 },
  { width: 1024, height: 700 },
];

async function expectToFit(page: Page, path: string): Promise<void> {
  const before = page.viewportSize();
  for (const size of SIZES) {
    await page.setViewportSize(size);
    const over = await page.evaluate<number[]>(
      `[document.documentElement, document.querySelector('main')].map((box) => box.scrollWidth - box.clientWidth)`,
    );
    expect({ path, width: size.width, over }).toEqual({ path, width: size.width, over: [0, 0] });
  }
  if (before !== null) await page.setViewportSize(before);
}

/** The focused element, and whether its focus is visible: by a ring, or by the border of its form. */
const FOCUSED = `(() => {
  const at = document.activeElement;
  if (at === null || at === document.body) return null;
  const line = at.closest('form')?.querySelector('textarea') === at ? getComputedStyle(at.closest('form')).borderTopStyle : 'none';
  return { name: at.getAttribute('aria-label') ?? at.textContent.slice(0, 60), ring: getComputedStyle(at).outlineStyle !== 'none' || line !== 'none' };
})()`;

/** Side effects of hostile text, if any. */
const STATE = `({
  pwned: globalThis.pwned ?? null,
  pictures: [...document.images].map((image) => new URL(image.src).pathname),
  inline: document.querySelectorAll('main script, main iframe, main object, svg[onload], [onerror], [onmouseover]').length,
})`;

test('focus is visible at every Tab stop, and nothing moves with reduced motion', async () => {
  await using window = await place.open(place.tasks);
  const { page } = window;
  await seen(page, 'Redis or memory?');
  const stops = new Set<string>();
  for (let stop = 0; stop < 45; stop += 1) {
    await page.keyboard.press('Tab');
    const found = await page.evaluate<{ name: string; ring: boolean } | null>(FOCUSED);
    if (found === null) break;
    stops.add(found.name);
    expect(found).toMatchObject({ ring: true });
  }
  expect(stops.size).toBeGreaterThan(15);
  await page.goto(new URL(place.task('deciding'), page.url()).href);
  await seen(page, 'The agent asks');
  expect(await page.evaluate<number>('document.getAnimations().length')).toBe(0);
});

test('A121, A125, A126: text from agents and goals stays text: nothing runs, loads or hides', async () => {
  await using window = await place.open(place.task('hostile'));
  const { page, complaints } = window;
  await page.getByText('Failed: ').first().waitFor();
  const timeline = page.getByRole('feed');
  await timeline.getByText(/^See <script>window.pwned=2<\/script>/).waitFor();
  await timeline.getByText('[image: spy, not loaded: https://spy.test/a.png]').waitFor();
  // A javascript: link becomes text; a misleading link shows its real host.
  await timeline.getByText('(javascript:window.pwned=3)', { exact: true }).waitFor();
  expect(await timeline.getByRole('link').evaluateAll((links) => links.map((link) => link.textContent))).toEqual([
    'bank (evil.test)',
  ]);
  const words = await page.locator('body').innerText();
  expect(words).toContain('<U+202E>gnp.exe');
  expect(words).not.toContain(RLO);
  expect(words).toContain('\\x1b]0;owned\\x07');
  expect(words).toContain('more characters cut]');
  expect(words).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
  await page.getByText('<img+src=x+onerror=window.pwned=5>.txt').first().waitFor();
  const state = async (): Promise<unknown> => page.evaluate(STATE);
  expect(await state()).toEqual({ pwned: null, pictures: ['/favicon.svg'], inline: 0 });
  await page.goto(new URL(place.tasks, page.url()).href);
  await page.getByText('<img src=x onerror').first().waitFor();
  expect(await state()).toEqual({ pwned: null, pictures: ['/favicon.svg'], inline: 0 });
  expect(await page.title()).not.toContain('owned');
  expect(complaints).toEqual([]);
});

test('the first page needs less than 250 kB of scripts', async () => {
  const first = await scriptBytes(place, place.tasks);
  const task = await scriptBytes(place, place.task('plain'));
  expect(first).toBeGreaterThan(50_000);
  expect(first).toBeLessThan(250_000);
  expect(task).toBeLessThan(300_000);
});
