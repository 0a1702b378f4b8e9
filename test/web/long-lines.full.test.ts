// test/web/long-lines.full.test.ts: lines of ten million characters, in a browser: in what an agent prints and says, in what a command
// printed, in a file. The page holds little of them, and nothing of the log is lost.
import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPlace, type Place, type Window } from './browser.ts';

const LONG = 10_000_000;
const MAKE = `head -c ${LONG} /dev/zero | tr '\\0' x`;

let place: Place;
beforeAll(async () => {
  place = await createPlace({ 'say.sh': `printf 'begin '; ${MAKE}; echo ' end'\n`, 'short.js': 'one\n' });
});
afterAll(() => place[Symbol.asyncDispose]());

/** What the page holds: elements, and letters in them. */
const HELD = `({ nodes: document.querySelectorAll('*').length, letters: document.body.innerText.length })`;
const LONGEST_TASK = `
  globalThis.longestMs = 0;
  new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) globalThis.longestMs = Math.max(globalThis.longestMs, duration); })
    .observe({ type: 'longtask', buffered: true });`;

async function open(path: string): Promise<Window> {
  const window = await place.open('/favicon.svg');
  await window.context.addInitScript(LONGEST_TASK);
  await window.page.goto(new URL(path, window.page.url()).href);
  return window;
}

async function expectLittle(page: Page): Promise<void> {
  const { nodes, letters } = await page.evaluate<{ nodes: number; letters: number }>(HELD);
  expect(nodes).toBeLessThan(2500);
  expect(letters).toBeLessThan(60_000);
  // For a person who wants to know; a machine shared with others has no figure that could be held.
  if (process.env['AGS_PICTURES'] !== undefined)
    console.log(`${nodes} nodes, longest task ${Math.round(await page.evaluate<number>('globalThis.longestMs'))} ms`);
}

test('what an agent prints in one line is shown in part, and kept to the letter in a log that can be downloaded', async () => {
  const { machine } = place;
  await machine.ags(['start', 'prints', 'go', '--agent', 'sh say.sh', '--max-parallel', '64']);
  await machine.until('prints', ['ready', 'no-changes', 'failed']);
  await using window = await open(`${place.task('prints')}?panel=logs`);
  const { page, complaints } = window;
  await page
    .getByRole('feed')
    .getByText(/^begin x{50}/)
    .first()
    .waitFor();
  await page
    .getByRole('group', { name: 'Log lines' })
    .getByText(/state=/)
    .first()
    .waitFor();
  await expectLittle(page);
  const saved = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download everything the agent printed, word for word' }).click();
  const bytes = readFileSync(await (await saved).path());
  expect(bytes.length).toBe('begin '.length + LONG + ' end\n'.length);
  expect(createHash('sha256').update(bytes).digest('hex')).toBe(
    createHash('sha256')
      .update(`begin ${'x'.repeat(LONG)} end\n`)
      .digest('hex'),
  );
  // It can still be used.
  await page.getByRole('button', { name: 'Close the logs' }).click();
  await page.getByRole('button', { name: 'Errors' }).click();
  await page.getByText('Nothing of this kind').waitFor();
  expect(complaints).toEqual([]);
});

test('an event as long as that is shown in part, wherever it comes from', async () => {
  const { machine } = place;
  await machine.runDemo('says', 'say: short');
  // No runner of ours writes such a line, but whoever reads logs takes what there is.
  const log = join(machine.stateDir, 'tasks/says/events.jsonl');
  const last = machine.events('says').at(-1)?.seq ?? 0;
  const at = new Date().toISOString();
  const more = [
    { type: 'agent.said', text: `Long ${'x'.repeat(LONG)} end` },
    { type: 'tool.started', id: 't', tool: 'Shell', action: { kind: 'command', command: 'print' } },
    { type: 'tool.finished', id: 't', outcome: 'failed', exitCode: 1, output: `Out ${'y'.repeat(LONG)} end` },
    { type: 'agent.said', text: 'and on it goes' },
  ].map((event, i) => JSON.stringify({ seq: last + 1 + i, at, task: 'says', ...event, prev: '' }));
  appendFileSync(log, `${more.join('\n')}\n`);
  await using window = await open(place.task('says'));
  const { page, complaints } = window;
  const feed = page.getByRole('feed');
  await feed.getByText('and on it goes').waitFor();
  await feed.getByText(/^Long x{50}/).waitFor();
  await feed.getByText(/^Out y{50}/).waitFor();
  await expectLittle(page);
  await page.keyboard.press('l');
  await page.getByRole('group', { name: 'Log lines' }).getByText('and on it goes').waitFor();
  await expectLittle(page);
  await page.getByRole('textbox', { name: 'Message the agent' }).fill('still here');
  expect(complaints).toEqual([]);
});

test('a file with a line as long as that is reviewed beside others, and merged whole', async () => {
  const { machine } = place;
  await machine.runDemo(
    'file',
    `run: ${MAKE} > long.js; ${MAKE} >> short.js; head -c 6000000 /dev/zero | tr '\\0' z > half.js // write: a.md hello`,
  );
  await using window = await open(`${place.task('file')}/changes?file=half.js`);
  const { page, complaints } = window;
  const diff = page.getByRole('region', { name: 'Changes' });
  const tree = page.getByRole('tree');
  await page.getByText(/Merges cleanly onto/).waitFor();
  for (const [name, words] of [
    ['half.js', 'more characters cut]'],
    ['long.js', 'It is too large to be shown.'],
    ['short.js', 'It is too large to be shown.'],
    ['a.md', 'hello'],
  ] as const) {
    await tree.getByText(name, { exact: true }).click();
    await diff.getByText(words).first().waitFor();
    await expectLittle(page);
  }
  const bar = page.getByRole('region', { name: 'Merge' });
  // Nobody could read them: they count as able to run, and are taken by somebody who says so.
  await page.getByRole('treeitem', { name: 'Runs on your machine' }).locator('[data-tick]').click();
  await bar.getByRole('button', { name: 'Merge 4 files' }).click();
  await bar.getByText('4 files merged into main').waitFor();
  expect([machine.read('long.js').length, machine.read('short.js').length]).toEqual([LONG, LONG + 4]);
  expect(complaints).toEqual([]);
});
