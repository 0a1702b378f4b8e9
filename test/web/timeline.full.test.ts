// test/web/timeline.full.test.ts: a timeline of thousands of events, and queued messages, in a browser.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPlace, type Place } from './browser.ts';

const COUNT = 5000;
let place: Place;
beforeAll(async () => {
  place = await createPlace();
});
afterAll(() => place[Symbol.asyncDispose]());

/** The first fully visible item, and its distance from the top edge. */
const FIRST = `(() => {
  const box = document.querySelector('[role=feed]');
  const top = box.getBoundingClientRect().top;
  const seen = [...box.querySelectorAll('article')]
    .map((one) => ({ at: one.getBoundingClientRect(), text: one.innerText.match(/word \\d+/)?.[0] ?? '' }))
    .filter(({ at, text }) => at.top >= top && text !== '')
    .sort((a, b) => a.at.top - b.at.top)[0];
  return { text: seen.text, below: Math.round(seen.at.top - top) };
})()`;
const first = (page: Page): Promise<{ text: string; below: number }> => page.evaluate(FIRST);
const scroll = (page: Page, to: string): Promise<unknown> =>
  page.evaluate(`document.querySelector('[role=feed]').scrollTop = ${to}`);

test('a timeline of 5,000 events shows its end at once, and keeps its scroll position while earlier pages load', async () => {
  const { machine } = place;
  const words = Array.from({ length: COUNT }, (_, i) => `say: word ${i + 1}`).join('\n');
  const { json } = await machine.server.call<{ tasks: string[] }>('POST', '/api/tasks', {
    project: machine.projectId,
    goals: [{ text: `Talk\n${words}`, name: 'long' }],
    agents: ['demo'],
  });
  expect(json.tasks).toEqual(['long']);
  await machine.until('long', ['no-changes']);
  expect(machine.texts('long')).toHaveLength(COUNT);
  await using window = await place.open('/favicon.svg');
  const { page, complaints } = window;
  const pages: string[] = [];
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname.endsWith('/events')) pages.push(searchParams.get('before') ?? 'end');
  });
  await page.goto(new URL(place.task('long'), page.url()).href);
  const feed = page.getByRole('feed');
  await feed.getByText(`word ${COUNT}`, { exact: true }).waitFor();
  expect(pages).toEqual(['end']);
  // Only items near the visible area are rendered.
  expect(await feed.locator('article').count()).toBeLessThan(80);

  // Near the top, but not at it: the visible item keeps its exact position while pages load.
  for (let earlier = 1; earlier <= 2; earlier += 1) {
    let proceed = (): void => undefined;
    const proceeding = new Promise<void>((resolve) => (proceed = resolve));
    await page.route('**/events?*before=*', async (route) => proceeding.then(() => route.continue()), { times: 1 });
    await scroll(page, '150');
    await expect.poll(() => pages.length, { timeout: 10_000 }).toBe(earlier + 1);
    // Wait until items are rendered and measured.
    await expect.poll(async () => (await first(page)).below).toBeLessThan(100);
    const before = await first(page);
    proceed();
    await expect
      .poll(() => page.evaluate<number>(`document.querySelector('[role=feed]').scrollTop`))
      .toBeGreaterThan(2000);
    await expect.poll(() => first(page)).toEqual(before);
  }
  // Each page is twice as long as the one before, so the third one reaches the goal.
  await scroll(page, '0');
  await expect.poll(() => pages.length, { timeout: 10_000 }).toBe(4);
  await expect
    .poll(() => page.evaluate<number>(`document.querySelector('[role=feed]').scrollTop`))
    .toBeGreaterThan(100);
  await scroll(page, '0');
  await feed.getByText('Goal', { exact: true }).waitFor();
  await feed.getByText('word 1', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Jump to latest' }).click();
  await feed.getByText(`word ${COUNT}`, { exact: true }).waitFor();
  expect(await feed.locator('article').count()).toBeLessThan(80);
  expect(complaints).toEqual([]);
});

test('the user edits or withdraws queued messages, and the others become a turn', async () => {
  const { machine } = place;
  await machine.ags(['start', 'busy', 'wait: 600', '--agent', 'demo', '--max-parallel', '64', '--detach']);
  await machine.event('busy', 'run.started');
  await using window = await place.open(place.task('busy'));
  const { page, complaints } = window;
  const box = page.getByRole('textbox', { name: 'Message the agent' });
  const waiting = page.getByRole('list', { name: 'Queued messages' }).getByRole('listitem');
  const send = async (text: string): Promise<void> => {
    await box.fill(text);
    await box.press('Control+Enter');
    await waiting.filter({ hasText: text }).waitFor();
  };
  await send('write: wrong.md 1');
  await send('write: rihgt.md 1');
  // A message sent from the command line is queued too.
  await machine.ags(['send', 'busy', 'write: third.md 1']);
  await page.reload();
  await waiting.filter({ hasText: 'third.md' }).waitFor();
  await page.getByRole('button', { name: 'Withdraw: write: wrong.md 1' }).click();
  await waiting.filter({ hasText: 'wrong.md' }).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Edit: write: rihgt.md 1' }).click();
  await expect.poll(() => box.inputValue()).toBe('write: rihgt.md 1');
  await send('write: right.md 1');
  expect(await waiting.count()).toBe(2);
  const withdrawn = await machine.ags(['send', 'busy', '--withdraw']);
  expect(withdrawn).toMatchObject({ code: 0, stdout: 'write: third.md 1\nwrite: right.md 1\n' });
  expect((await machine.ags(['send', 'busy', '--withdraw'])).stderr).toContain('There is no waiting message for busy');
  await page.reload();
  await box.waitFor();
  expect(await waiting.count()).toBe(0);
  await send('write: last.md 1');
  // Stopping ends the turn.
  await machine.ags(['stop', 'busy']);
  await machine.until('busy', ['stopped']);
  await waiting.getByText('Delivered when the agent continues').waitFor();
  await box.fill('write: after.md 1');
  await box.press('Control+Enter');
  await machine.until('busy', ['ready', 'no-changes']);
  await waiting.first().waitFor({ state: 'detached' });
  expect(machine.branch('busy')).toEqual(expect.arrayContaining(['after.md', 'last.md']));
  expect(machine.branch('busy')).not.toContain('wrong.md');
  expect(complaints).toEqual([]);
});
