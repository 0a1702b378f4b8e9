// test/web/task.full.test.ts: watches, answers, allows, stops, restarts and forks a live task, in a browser.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ApiNetwork, ApiTaskDetail } from '../../src/protocol/api/api.ts';
import { agreeTo, createPlace, type Place } from './browser.ts';

let place: Place;
beforeAll(async () => {
  place = await createPlace();
  const hooks = join(place.machine.home, '.config/ags/hooks');
  mkdirSync(hooks, { recursive: true });
  const hook = join(hooks, 'pre-bash');
  writeFileSync(
    hook,
    `#!/bin/sh\ngrep -q '"command":"deploy' || exit 0\necho "Nothing is deployed from here." >&2\nexit 2\n`,
  );
  chmodSync(hook, 0o755);
  execFileSync('chown', ['-R', String(place.machine.uid), join(place.machine.home, '.config')]);
});
afterAll(() => place[Symbol.asyncDispose]());

/** Removes the task after the test, because a busy machine starts one agent at a time. */
async function start(name: string, goal: string, ...more: string[]): Promise<AsyncDisposable> {
  const { machine } = place;
  const done = await machine.ags(['start', name, goal, '--agent', 'demo', '--max-parallel', '64', '--detach', ...more]);
  expect(done.stderr).toContain('started');
  return {
    async [Symbol.asyncDispose]() {
      await machine.ags(['rm', name, '--force', '--yes']);
    },
  };
}

test('the timeline shows what an agent says, reads, runs and writes, and what was refused', async () => {
  await using _task = await start(
    'watched',
    [
      'Fix the **dates**',
      'read: README.md',
      'read: missing.txt',
      'say: I begin with `dates`, see [the guide](https://example.com/guide).',
      'run: seq 100; exit 3',
      'run: deploy now',
      'write: src/date.ts export const day = 1;',
      'fetch: https://blocked.test/',
      'wait: 600',
    ].join('\n'),
  );
  await using window = await place.open(place.task('watched'));
  const { page, complaints } = window;
  const timeline = page.getByRole('feed');
  await timeline.getByText('blocked.test', { exact: true }).waitFor();
  await timeline.getByText('Read 2 files').waitFor();
  await timeline.getByText('1 failed').waitFor();
  await timeline.getByText('exit 3', { exact: true }).waitFor();
  await timeline.getByText('Nothing is deployed from here.').first().waitFor();
  // A failed command shows only the end of its output.
  await timeline.getByRole('button', { name: 'Show 92 more lines' }).waitFor();
  await timeline.getByText('Wrote src/date.ts').waitFor();
  expect(await timeline.getByRole('link', { name: 'the guide (example.com)' }).getAttribute('rel')).toContain(
    'noopener',
  );
  const side = page.getByRole('complementary');
  await side.getByText('src/date.ts').waitFor();
  await side.getByText('blocked.test', { exact: true }).waitFor();

  await page.getByRole('button', { name: 'Commands' }).click();
  await timeline.getByText('Wrote src/date.ts').waitFor({ state: 'detached' });
  expect(page.url()).toContain('show=commands');
  expect(complaints).toEqual([]);
});

test('the user allows a host for a run on the task page', async () => {
  await using _task = await start(
    'asking',
    'fetch: https://wanted.test/ // say: it went on // wait: 600',
    '--network',
    'record',
  );
  await using window = await place.open(place.task('asking'));
  const { page, complaints } = window;
  const card = page.getByRole('complementary').getByRole('group', { name: 'Network: wanted.test' });
  await card.getByText(/Blocked in \d+ s unless you answer/).waitFor();
  await card.getByText(/^Requested by perl/).waitFor();
  // Details that were read just before the request are refreshed.
  await page.route(
    '**/api/tasks/asking',
    async (route) => {
      const { json } = await place.machine.server.call<ApiTaskDetail>('GET', '/api/tasks/asking');
      await route.fulfill({ json: { ...json, asks: [] } });
    },
    { times: 1 },
  );
  await page.reload();
  await card.getByText(/Blocked in \d+ s unless you answer/).waitFor();
  await card.getByText(/^Requested by perl/).waitFor();
  await page.locator('header [data-state=needs-you]').waitFor();
  await using list = await place.open(place.tasks);
  await list.page.locator('[data-task=asking]').getByRole('link', { name: 'Allow', exact: true }).waitFor();
  await card.getByRole('button', { name: 'Allow for this run' }).click();
  await page.getByRole('feed').getByText('it went on', { exact: true }).waitFor();
  await page.locator('header [data-state=running]').waitFor();
  const { json } = await place.machine.server.call<ApiNetwork>('GET', '/api/network?task=asking');
  expect(json.rules.filter(({ text }) => text.includes('wanted.test')).map(({ action }) => action)).toEqual(['allow']);
  expect(complaints).toEqual([]);
});

test('a question takes precedence over a blocked host in the list', async () => {
  await using _task = await start('choosing', 'fetch: https://blocked.test/ // ask: Which one? // wait: 600');
  await using list = await place.open(place.tasks);
  await list.page.locator('[data-task=choosing]').getByRole('link', { name: 'Answer', exact: true }).waitFor();
});

test('the user answers a question in the message field', async () => {
  await using _task = await start('deciding', 'ask: Redis or memory?');
  await using window = await place.open(place.task('deciding'));
  const { page, complaints } = window;
  await page.getByRole('group', { name: 'Question from the agent' }).getByText('Redis or memory?').waitFor();
  await page.keyboard.press('i');
  await page.keyboard.type('write: answer.txt memory');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('feed').getByText('Wrote answer.txt').waitFor();
  await page.locator('header [data-state=ready]').waitFor();
  await page.getByRole('link', { name: 'Review changes 1' }).waitFor();
  expect(complaints).toEqual([]);
});

test('the terminal is a shell in the sandbox and survives a reload', async () => {
  await using _task = await start('inside', 'say: up // wait: 600');
  await using window = await place.open(place.task('inside'));
  const { page, complaints } = window;
  await page.getByRole('feed').getByText('up', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Terminal' }).click();
  const screen = page.getByRole('region', { name: 'Terminal' });
  await screen.getByText('Shell in the sandbox').waitFor();
  await page.keyboard.type('MARK=kept-$((40+2)); printf "\\033[38;2;255;0;0m$MARK\\033[0m\\n"\n');
  await screen.locator('.xterm-rows').getByText('kept-42').waitFor();
  await page.reload();
  await screen.getByText('Shell in the sandbox').waitFor();
  await screen.locator('.xterm-rows').getByText('kept-42').waitFor();
  await page.keyboard.type('echo again-$MARK\n');
  await screen.locator('.xterm-rows').getByText('again-kept-42', { exact: true }).waitFor();
  // The shell receives Tab; one shortcut leaves the terminal.
  const focused = (): Promise<string | null> => page.evaluate('document.activeElement.getAttribute("aria-label")');
  await page.keyboard.press('Tab');
  expect(await focused()).toBe('Terminal input');
  await page.keyboard.press('Control+Backquote');
  expect(await focused()).toBe('Close terminal');
  await page.keyboard.press('Enter');
  await screen.waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
});

test('the user stops, restarts and forks a task, and searches its logs', async () => {
  await using _task = await start('moved', 'write: first.txt 1 // say: waiting // wait: 600');
  await using window = await place.open(place.task('moved'));
  const { page, complaints } = window;
  await page.getByRole('feed').getByText('waiting', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.locator('header [data-state=stopped]').waitFor();
  await page.keyboard.press('l');
  const logs = page.getByRole('region', { name: 'Logs' });
  await logs.getByRole('searchbox').fill('first.txt');
  await logs.getByText('tool.started').first().waitFor();
  await logs.getByRole('button', { name: 'Close logs' }).click();
  await page.getByRole('button', { name: 'Restart', exact: true }).click();
  await page.locator('header [data-state=running]').waitFor();
  await page.getByRole('feed').getByText('waiting', { exact: true }).waitFor();
  await agreeTo(page, 's', /^Stop /);
  await page.locator('header [data-state=stopped]').waitFor();
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name: 'Fork' }).click();
  await page.getByRole('textbox', { name: 'What should it do?' }).fill('append: first.txt 2');
  await page.getByRole('button', { name: 'Start fork' }).click();
  await page.getByRole('heading', { name: 'append: first.txt 2' }).waitFor();
  await page.locator('header [data-state=ready]').waitFor();
  expect(complaints).toEqual([]);
});

test('the page reports an unreachable server, and loses no events when it returns', async () => {
  const { machine } = place;
  await using _task = await start('steady', 'say: one // wait: 600');
  await using window = await place.open(place.task('steady'));
  const { page } = window;
  const timeline = page.getByRole('feed');
  await timeline.getByText('one', { exact: true }).waitFor();
  const { port } = machine.server;
  await machine.server.stop('SIGKILL');
  await page.getByText('The server is unreachable').waitFor();
  await timeline.getByText('one', { exact: true }).waitFor();
  await machine.ags(['stop', 'steady']);
  await machine.serve(['--port', String(port)]);
  await page.getByText('The server is unreachable').waitFor({ state: 'detached' });
  await page.locator('header [data-state=no-changes], header [data-state=stopped]').waitFor();
  expect(await timeline.getByText('one', { exact: true }).count()).toBe(1);
  expect(await timeline.getByText('Stopped').count()).toBe(1);
});
