// test/web/small.full.test.ts: small windows, the page before sign-in, and the facts about a task's sandbox.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { paperTask } from '../server/state.ts';
import { createServerMachine } from '../server/place.ts';
import { ONE } from '../harness.ts';
import { expectAccessible, picture, seen, type Place } from './browser.ts';
import { createReviews } from './review-place.ts';

let place: Place;
beforeAll(async () => {
  const many = Array.from({ length: 30 }, (_, i) => `write: src/deep/file-${i}.txt ${i}`).join(' // ');
  place = await createReviews(
    { 'README.md': '# project\n' },
    { many: `Many files // ${many} // write: package.json {"scripts":{"postinstall":"id"}} // use: 420000` },
  );
}, 120_000);
afterAll(() => place[Symbol.asyncDispose]());

describe.each([
  ['of a phone', 320, 640],
  ['at 200 % zoom', 640, 400],
] as const)('a window %s', (_name, width, height) => {
  test('shows the files of a review and its merge button', async () => {
    await using at = await place.open(`${place.task('many')}/changes`, { viewport: { width, height } });
    const { page } = at;
    await page.getByText(/Merges cleanly onto/).waitFor();
    const tree = await page.getByRole('tree').boundingBox();
    expect(tree?.height).toBeGreaterThanOrEqual(120);
    await picture(page, `small-review-${width}`);
    await page.getByRole('button', { name: /^Merge 30 files/ }).scrollIntoViewIfNeeded();
    const merge = await page.getByRole('button', { name: /^Merge 30 files/ }).boundingBox();
    expect(merge === null ? 0 : merge.y + merge.height).toBeLessThanOrEqual(height);
    await expectAccessible(page);
    expect(at.complaints).toEqual([]);
  });

  test('shows time, cost, files and lines of a task in the list', async () => {
    await using at = await place.open(place.tasks, { viewport: { width, height } });
    const row = at.page.locator('[data-task=many]');
    for (const words of ['$0.42', '31 files', '+31'])
      await row.getByText(words, { exact: true }).filter({ visible: true }).first().waitFor();
    expect(await at.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  });
});

test('the list shows the cost of a task at 1280 pixels', async () => {
  await using at = await place.open(place.tasks, { viewport: { width: 1280, height: 800 } });
  await at.page.locator('[data-task=many]').getByText('$0.42').filter({ visible: true }).first().waitFor();
});

test('the task page shows the backend, the image and the hidden files of the sandbox', async () => {
  await using at = await place.open(place.task('many'));
  const { page } = at;
  await page.getByRole('button', { name: 'Sandboxed', exact: true }).click();
  await seen(page, 'bubblewrap, on this machine');
  await seen(page, 'from this machine');
  await page.getByText('seccomp', { exact: true }).waitFor();
  await expectAccessible(page);

  // The page shows what the task's files say, for any backend.
  const { directory } = paperTask(place.machine, 'in-docker', { live: false });
  const run = join(directory, 'run.json');
  const label = 'docker · image 0123456789ab · overlay · docker inside: rootless, seccomp, no network';
  const image = { reference: 'corp/<b>base</b>:12', id: `sha256:${'0'.repeat(64)}` };
  const more = { backend: 'docker', image, label, hidden: ['.env'] };
  writeFileSync(run, JSON.stringify({ ...JSON.parse(readFileSync(run, 'utf8')), ...more }));
  await page.goto(new URL(place.task('in-docker'), page.url()).href);
  await page.getByRole('button', { name: 'Sandboxed · Docker · corp/<b>base</b>:12' }).click();
  await page.getByText('docker inside: rootless, seccomp, no network', { exact: true }).waitFor();
  expect(await page.getByRole('dialog').innerText()).toContain('1 project file that may hold secrets is hidden: .env');
  expect(at.complaints).toEqual([]);
});

describe.each(['light', 'dark'] as const)('in %s', (colorScheme) => {
  test('without sign-in the server shows only how to sign in, in a readable page', async () => {
    const context = await place.browser.newContext({ colorScheme });
    const page = await context.newPage();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    const answer = await page.goto(new URL(place.machine.server.link).origin);
    expect(answer?.status()).toBe(401);
    expect(await page.getByRole('heading').innerText()).toBe('You are not signed in.');
    const [background, font] = await page.evaluate<[string, string]>(
      '[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).fontFamily]',
    );
    expect([background, font]).toEqual([
      colorScheme === 'dark' ? 'rgb(14, 17, 22)' : 'rgb(255, 255, 255)',
      expect.stringContaining('sans-serif'),
    ]);
    expect(answer?.headers()['content-security-policy']).not.toContain('script-src');
    await picture(page, `not-entered-${colorScheme}`);
    await context.close();
    expect(asked.filter((path) => !['/', '/favicon.ico'].includes(path))).toEqual([]);
  });
});

test('a new user can type at once: first a repository, then a goal', async () => {
  using machine = await createServerMachine(ONE, { 'README.md': '# new\n' });
  expect((await machine.server.call('DELETE', `/api/projects/${machine.projectId}`)).status).toBe(200);
  const context = await place.browser.newContext();
  const page = await context.newPage();
  await page.goto(machine.server.link);
  await seen(page, 'Which repository should agents work on?');
  await page.keyboard.type('/nowhere/at/all\n');
  await seen(page, 'There is no directory /nowhere/at/all.');
  await page.keyboard.press('Control+a');
  await page.keyboard.type(`${machine.project}\n`);
  await seen(page, 'No tasks yet');
  await page.keyboard.type('Look around');
  expect(await page.getByRole('textbox', { name: /What should an agent do/ }).inputValue()).toBe('Look around');
  await context.close();
});
