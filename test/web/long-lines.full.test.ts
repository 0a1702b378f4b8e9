// test/web/long-lines.full.test.ts: lines of ten million characters in agent output, command output and files, in a browser.
// The page renders only a small part of them, and the downloaded log is complete.
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

/** The number of elements and characters on the page. */
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
  // Printed for a person; a shared machine is too noisy for a limit on time.
  if (process.env['AGS_PICTURES'] !== undefined)
    console.log(`${nodes} nodes, longest task ${Math.round(await page.evaluate<number>('globalThis.longestMs'))} ms`);
}

test('a huge line of agent output is shown in part, and the downloaded log is complete', async () => {
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
  await page.getByRole('link', { name: 'Download raw agent output' }).click();
  const bytes = readFileSync(await (await saved).path());
  expect(bytes.length).toBe('begin '.length + LONG + ' end\n'.length);
  expect(createHash('sha256').update(bytes).digest('hex')).toBe(
    createHash('sha256')
      .update(`begin ${'x'.repeat(LONG)} end\n`)
      .digest('hex'),
  );
  // The page still works.
  await page.getByRole('button', { name: 'Close logs' }).click();
  await page.getByRole('button', { name: 'Errors' }).click();
  await page.getByText('No events of this kind').waitFor();
  expect(complaints).toEqual([]);
});

test('a huge event is shown in part, whatever its source', async () => {
  const { machine } = place;
  await machine.runDemo('says', 'say: short');
  // Our runner never writes such a line, but the page must survive a log that contains one.
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

test('a file with a huge line is reviewed beside others and merged completely', async () => {
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
  // Unreadable files count as able to run code, so the user must include them explicitly.
  await page.getByRole('treeitem', { name: 'Runs on your machine' }).locator('[data-tick]').click();
  await bar.getByRole('button', { name: 'Merge 4 files' }).click();
  await bar.getByText('4 files merged into main').waitFor();
  expect([machine.read('long.js').length, machine.read('short.js').length]).toEqual([LONG, LONG + 4]);
  expect(complaints).toEqual([]);
});
