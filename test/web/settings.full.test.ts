// test/web/settings.full.test.ts: notifications, shortcuts, projects and storage, in a browser.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPlace, seen, type Place, type Window } from './browser.ts';

let place: Place;
beforeAll(async () => {
  place = await createPlace();
});
afterAll(() => place[Symbol.asyncDispose]());

async function start(name: string, goal: string): Promise<void> {
  const flags = ['--agent', 'demo', '--max-parallel', '64', '--detach'];
  const done = await place.machine.ags(['start', name, goal, ...flags]);
  expect(done.code, done.stderr).toBe(0);
}
/** A busy machine starts one agent at a time. */
async function remove(name: string): Promise<void> {
  const done = await place.machine.ags(['rm', name, '--force', '--yes']);
  expect(done.code, done.stderr).toBe(0);
}

/** Records the notifications that the page sends. */
const RECORD = `
  globalThis.notifications = [];
  globalThis.Notification = class extends Notification {
    constructor(title, options) { super(title, options); globalThis.notifications.push([title, options.body]); }
  };`;

/** By default, Playwright makes every window believe that it has focus. */
async function focus({ page, context }: Window, inFront: boolean): Promise<void> {
  const devtools = await context.newCDPSession(page);
  await devtools.send('Emulation.setFocusEmulationEnabled', { enabled: inFront });
  await expect.poll(() => page.evaluate('document.hasFocus()')).toBe(inFront);
}

test(
  'a window in the background sends notifications of questions and ends; a focused one sends none',
  { timeout: 300_000 },
  async () => {
    await using window = await place.open('/favicon.svg', { permissions: ['notifications'] });
    const { page, context, complaints } = window;
    await context.addInitScript(RECORD);
    await page.goto(new URL('/settings', page.url()).href);
    const notifications = (): Promise<unknown> => page.evaluate('globalThis.notifications');
    await page.getByRole('button', { name: 'Turn on notifications' }).click();
    await page.getByRole('checkbox', { name: 'Notifications' }).waitFor();

    // With focus, only the page announces it.
    await start('seen', 'ask: Red or blue? // wait: 600');
    await page.locator('[aria-live=assertive]').getByText('Needs you').waitFor({ state: 'attached' });
    await page.clock.install();
    await page.clock.fastForward(20_000);
    expect(await notifications()).toEqual([]);

    await remove('seen');
    // In the background: first the sanitized question; at least ten seconds later, all other news in one notification.
    await page.context().newPage();
    await focus(window, false);
    await start('unseen', 'Choose\nask: Cats \u001b[31mor dogs? // wait: 600');
    await page
      .locator('[aria-live=assertive]')
      .getByText('Choose: Needs you')
      .waitFor({ state: 'attached', timeout: 110_000 });
    await expect
      .poll(notifications)
      .toEqual([['Needs you: Choose', expect.stringContaining('Cats \\x1b[31mor dogs?')]]);
    // The installed clock keeps running, and two tasks can take longer than ten seconds.
    await page.clock.setSystemTime(Date.now() - 100_000);
    await remove('unseen');
    await place.machine.runDemo('end-a', 'Alpha\nwrite: a.txt 1');
    await place.machine.runDemo('end-b', 'Beta\nfail: no');
    await page.locator('[aria-live=polite]').getByText('Failed').waitFor({ state: 'attached' });
    expect(await notifications()).toHaveLength(1);
    await page.clock.fastForward(200_000);
    await expect.poll(notifications).toHaveLength(2);
    expect(await notifications()).toContainEqual(['2 tasks need attention', 'Alpha\nBeta']);

    // Turned off, there are no more notifications.
    await page.getByRole('checkbox', { name: 'Notifications' }).click();
    await place.machine.runDemo('end-c', 'Gamma\nfail: no');
    await page.locator('[aria-live=polite]').getByText('Gamma').waitFor({ state: 'attached' });
    await page.clock.fastForward(20_000);
    expect(await notifications()).toHaveLength(2);
    expect(complaints).toEqual([]);
  },
);

test('a changed shortcut works after a reload and the old one does not; reset restores it', async () => {
  await using window = await place.open('/settings');
  const { page, complaints } = window;
  await page.getByText('Change shortcuts').click();
  const change = page.getByRole('button', { name: 'Change: New goal' });
  await change.click();
  await page.keyboard.press('q');
  await page.getByRole('listitem').filter({ hasText: 'New goal' }).getByText('Q', { exact: true }).waitFor();
  await page.goto(new URL(place.tasks, page.url()).href);
  const box = page.getByRole('textbox', { name: 'What should an agent do?' });
  await box.waitFor();
  const isInBox = (): Promise<boolean> => page.evaluate(`document.activeElement?.tagName === 'TEXTAREA'`);
  await page.keyboard.press('c');
  expect(await isInBox()).toBe(false);
  await page.keyboard.press('q');
  expect(await isInBox()).toBe(true);
  expect(await box.inputValue()).toBe('');
  // The shortcut dialog shows the change.
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('Q', { exact: true }).waitFor();
  await page.goto(new URL('/settings', page.url()).href);
  await page.getByText('Change shortcuts').click();
  await page.getByRole('button', { name: 'Reset: New goal' }).click();
  await page.getByRole('listitem').filter({ hasText: 'New goal' }).getByText('C', { exact: true }).waitFor();
  expect(complaints).toEqual([]);
});

test('clean-up deletes unneeded data and keeps unmerged work', async () => {
  await place.machine.runDemo('kept', 'write: kept.txt 1');
  await place.machine.runDemo('idle', 'say: I changed nothing');
  await using window = await place.open('/settings');
  const { page, complaints } = window;
  const storage = page.getByRole('region', { name: 'Storage' });
  const line = (name: string) => storage.getByRole('listitem').filter({ has: page.getByText(name, { exact: true }) });
  await line('idle').getByText('Can be deleted').waitFor();
  await line('kept').getByText('Kept', { exact: true }).waitFor();
  await storage.getByRole('button', { name: /^Delete \d+ items?,/ }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('idle', { exact: true }).waitFor();
  expect(await dialog.getByText('kept', { exact: true }).count()).toBe(0);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  expect(place.machine.tasks()).toContain('idle');
  await storage.getByRole('button', { name: /^Delete \d+ items?,/ }).click();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByText(/^\d+ items? deleted, .* freed$/).waitFor();
  await line('idle').waitFor({ state: 'detached' });
  await line('kept').getByText('Kept', { exact: true }).waitFor();
  expect(place.machine.tasks()).toContain('kept');
  expect(place.machine.tasks()).not.toContain('idle');
  expect(complaints).toEqual([]);
});

/** A git:// server on loopback that answers only after proceed() is called. */
async function gitServer(path: string): Promise<{ url: string; proceed(): void } & Disposable> {
  let proceed = (): void => undefined;
  const proceeding = new Promise<void>((resolve) => (proceed = resolve));
  const serve = async (socket: Socket): Promise<void> => {
    const request = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
    socket.pause();
    // Until then, git has printed its first line and waits.
    await proceeding;
    const length = Number.parseInt(request.toString('latin1', 0, 4), 16);
    const child = spawn('git', ['-c', 'safe.directory=*', 'upload-pack', path], { stdio: ['pipe', 'pipe', 'ignore'] });
    child.stdin.write(request.subarray(length));
    // git may exit before it has read everything.
    child.stdin.on('error', () => undefined);
    socket.pipe(child.stdin);
    child.stdout.pipe(socket);
  };
  const server: Server = createServer((socket) => void serve(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `git://127.0.0.1:${port}/shop.git`, proceed, [Symbol.dispose]: () => void server.close() };
}

test('the page clones a project from a URL, shows progress, and removes it from the list again', async () => {
  const { machine } = place;
  const bare = join(machine.home, 'shop.git');
  machine.git('clone', '-q', '--bare', machine.project, bare);
  using git = await gitServer(bare);
  await using window = await place.open('/');
  const { page, complaints } = window;
  const add = async (address: string): Promise<void> => {
    await page.getByRole('button', { name: 'Add project' }).click();
    await page.getByRole('textbox', { name: 'Path or URL' }).fill(address);
    await page.getByRole('button', { name: 'Clone' }).click();
  };
  await add(git.url);
  await page.getByRole('heading', { name: 'Tasks in shop' }).waitFor({ state: 'attached' });
  await page.getByRole('status').getByText(`Cloning ${git.url}`).waitFor();
  await page.getByRole('status').getByText('Cloning into').waitFor();
  // No task can start before the clone is complete.
  expect(await page.getByRole('textbox', { name: 'What should an agent do?' }).count()).toBe(0);
  git.proceed();
  await page.getByRole('textbox', { name: 'What should an agent do?' }).waitFor();
  const clone = join(machine.home, '.local/share/ags/projects/shop');
  expect(existsSync(join(clone, 'README.md'))).toBe(true);

  // A URL that names a command is refused; a URL without a repository shows the reason.
  await add('ext://sh');
  await page.getByRole('alert').getByText('is not the address of a repository').waitFor();
  await page.keyboard.press('Escape');
  await add(`file://${machine.home}/nowhere.git`);
  await seen(page, 'Cannot clone the repository');

  await page.goto(new URL('/settings', page.url()).href);
  const projects = page.getByRole('region', { name: 'Projects' });
  await projects.getByRole('button', { name: 'Remove from list: shop' }).click();
  await page.getByText('Project removed from the list').waitFor();
  await projects.getByRole('button', { name: 'Remove from list: shop' }).waitFor({ state: 'detached' });
  expect(existsSync(join(clone, 'README.md'))).toBe(true);
  // A project with tasks stays on the list.
  await machine.runDemo('named', 'say: hello');
  await projects.getByRole('button', { name: 'Remove from list: project' }).click();
  await projects.getByRole('button', { name: 'Remove from list: project' }).waitFor();
  expect(complaints.filter((text) => !text.includes('status of 4'))).toEqual([]);
});
